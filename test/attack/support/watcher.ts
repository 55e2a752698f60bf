/**
 * Another client of an attacked engine, in a thread of its own so that the attack's own work delays nothing here: asks
 * for the version again and again and reports the longest time without an answer.
 */
import { get } from "node:http";
import { parentPort, workerData } from "node:worker_threads";

/** Pause between an answer and the next question, ms. */
const PAUSE_MS = 20;
/** A request is given up after this, ms; the measured gap keeps growing. */
const QUESTION_TIMEOUT_MS = 30_000;
/** Once the attack is over, an engine that answers nothing for this long is not asked again, ms. */
const GIVE_UP_MS = 10_000;

const { url } = workerData as { url: string };
let lastAnswerMs = performance.now();
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

function note(): void {
  const nowMs = performance.now();
  longestGapMs = Math.max(longestGapMs, nowMs - lastAnswerMs);
  lastAnswerMs = nowMs;
}

async function watch(): Promise<void> {
  await ask();
  answers = 1;
  lastAnswerMs = performance.now();
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
  longestGapMs = Math.max(longestGapMs, performance.now() - lastAnswerMs);
  parentPort!.postMessage({ longestGapMs, answers });
  parentPort!.close();
}

parentPort!.on("message", () => isOver = true);
void watch().catch((error) => parentPort!.postMessage({ error: String(error) }));
