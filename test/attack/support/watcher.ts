/**
 * Another client of an attacked engine, in a thread of its own so that the attack's own work delays nothing here: asks
 * for the version again and again and reports the longest time without an answer. What other programs on the machine had of
 * that time does not count.
 */
import { readFileSync } from "node:fs";
import { get } from "node:http";
import { parentPort, workerData } from "node:worker_threads";

/** Pause between an answer and the next question, ms. */
const PAUSE_MS = 20;
/** A request is given up after this, ms; the measured gap keeps growing. */
const QUESTION_TIMEOUT_MS = 30_000;
/** Once the attack is over, an engine that answers nothing for this long is not asked again, ms. */
const GIVE_UP_MS = 10_000;

const { url, pid } = workerData as { url: string; pid: number };
let lastAnswerMs = performance.now();
let lastHeldUpMs = heldUpMs();
let longestGapMs = 0;
let answers = 0;
let isOver = false;

function ask(): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = get(`${url}/webui/api/service?method=get_version`, { agent: false }, (response) => {
      response.resume();
      response.on("error", reject);
      response.on("end", () => response.statusCode === 200 ? resolve() : reject(new Error(`${response.statusCode}`)));
    });
    request.setTimeout(QUESTION_TIMEOUT_MS, () => request.destroy(new Error("no answer")));
    request.on("error", reject);
  });
}

/**
 * How long the engine's main thread and this one were ready to run and waited for a processor, since they began, ms. Zero where
 * the system (other than Linux) does not say.
 */
function heldUpMs(): number {
  let ns = 0;
  for (const thread of [String(pid), "thread-self"]) {
    try {
      ns += Number(readFileSync(`/proc/${thread}/schedstat`, "utf8").split(" ")[1]);
    } catch {
      // Nothing is subtracted.
    }
  }
  return ns / 1e6;
}

/** Counts the gap that ends now, or is still open. */
function note(): void {
  const [nowMs, heldMs] = [performance.now(), heldUpMs()];
  longestGapMs = Math.max(longestGapMs, nowMs - lastAnswerMs - (heldMs - lastHeldUpMs));
  [lastAnswerMs, lastHeldUpMs] = [nowMs, heldMs];
}

async function watch(): Promise<void> {
  await ask();
  answers = 1;
  [lastAnswerMs, lastHeldUpMs] = [performance.now(), heldUpMs()];
  parentPort!.postMessage("watching");
  let isAnswered = true;
  const isDue = () => !isOver || (!isAnswered && performance.now() - lastAnswerMs < GIVE_UP_MS);
  while (isDue()) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    try {
      await ask();
      isAnswered = true;
      answers++;
      note();
    } catch {
      // Counted by the gap: only an answer ends it.
      isAnswered = false;
    }
  }
  // A gap that is still open counts as well.
  note();
  parentPort!.postMessage({ longestGapMs, answers });
  parentPort!.close();
}

parentPort!.on("message", () => isOver = true);
void watch().catch((error) => parentPort!.postMessage({ error: String(error) }));
