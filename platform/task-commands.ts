/** `import` and `check`: start a background task of an engine running on this machine and follow it to its end. */
import process from "node:process";
import { loadAccessToken } from "../src/account/access-token.ts";
import type { Config } from "../src/config.ts";
import { MillraceError } from "../src/errors.ts";
import { MAX_IMPORT_BYTES } from "../src/playlist/lists.ts";
import type { Ports } from "../src/ports.ts";
import { chooseDirectories } from "./directories.ts";
import { complain, print } from "./host.ts";
import { absolute } from "./peers-only.ts";
import { ProgressLine } from "./progress-line.ts";

/** Time between two checks of the task, ms. */
const LOOK_EVERY_MS = 250;
/** Deadline for one answer of the engine, ms. */
const ANSWER_TIMEOUT_MS = 60_000;
/** Deadline for the upload of a list, ms. */
const UPLOAD_TIMEOUT_MS = 300_000;
/** Addresses that mean every interface, so that the engine also listens on loopback. */
const WILDCARDS: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

/** The fields of `get_task` that are shown. */
interface Task {
  readonly state: string;
  readonly done: number;
  readonly total: number;
  readonly skipped: number;
  readonly errors: readonly { readonly line: number; readonly message: string }[];
  readonly errors_total: number;
  readonly error: string | null;
}

/** Imports an M3U list, from a file or an address, into the engine's playlist; returns the exit code. */
export async function runImport(config: Config, ports: Ports, stopped: Promise<void>): Promise<number> {
  const [list] = config.words;
  if (list === undefined) throw new MillraceError("config", "import needs an M3U list: a file or an address");
  const engine = await RunningEngine.find(config, ports);
  const isAddress = /^https?:/i.test(list);
  const body = isAddress
    ? undefined
    : new Uint8Array(await ports.files.readFile(absolute(list), { maxBytes: MAX_IMPORT_BYTES }));
  const { task_id } = await engine.call<{ task_id: number }>("playlist_import", isAddress ? { url: list } : {}, body);
  const task = await follow(engine, task_id, "importing", config.json, stopped);
  for (const { line, message } of task.errors) complain(`line ${line}: ${message}`);
  return finish(
    config.json,
    task,
    `${task.done - task.skipped} imported, ${task.skipped} there already, ${task.errors_total} lines could not be read`,
  );
}

/** Checks which items of the playlist are alive, all or those with a title; returns the exit code. */
export async function runCheck(config: Config, ports: Ports, stopped: Promise<void>): Promise<number> {
  const [query] = config.words;
  const engine = await RunningEngine.find(config, ports);
  const { task_id } = await engine.call<{ task_id: number }>("playlist_check", query === undefined ? {} : { query });
  const task = await follow(engine, task_id, "checking", config.json, stopped);
  return finish(config.json, task, `${task.done} checked, ${task.done - task.skipped} alive`);
}

function finish(isJson: boolean, task: Task, result: string): number {
  if (task.state === "failed") throw new MillraceError("invalid_argument", task.error ?? "it failed");
  print(isJson ? JSON.stringify(task) : task.state === "cancelled" ? `stopped: ${result}` : result);
  return 0;
}

async function follow(
  engine: RunningEngine,
  id: number,
  what: string,
  isJson: boolean,
  stopped: Promise<void>,
): Promise<Task> {
  const line = new ProgressLine(process.stderr);
  const task_id = String(id);
  let isStopped = false;
  void stopped.then(() => isStopped = true);
  let hasCancelled = false;
  try {
    for (;;) {
      const task = await engine.call<Task>("get_task", { task_id });
      if (task.state !== "queued" && task.state !== "running") return task;
      if (isJson) print(JSON.stringify(task));
      else line.show(what, task.done, task.total);
      if (isStopped && !hasCancelled) {
        hasCancelled = true;
        await engine.call("cancel_task", { task_id });
      }
      await Promise.race([new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS)), ...isStopped ? [] : [stopped]]);
    }
  } finally {
    line.end();
  }
}

/** The engine running with this configuration. */
class RunningEngine {
  readonly #base: string;
  readonly #token: string;

  private constructor(base: string, token: string) {
    this.#base = base;
    this.#token = token;
  }

  /** Finds it by the configured address and the token in its state directory. */
  static async find(config: Config, ports: Ports): Promise<RunningEngine> {
    const host = WILDCARDS.has(config.httpHost) || config.bindAll ? "127.0.0.1" : config.httpHost;
    const { stateDir } = chooseDirectories(config);
    const token = config.accessToken ?? (await loadAccessToken(ports, stateDir)).value;
    return new RunningEngine(`http://${host.includes(":") ? `[${host}]` : host}:${config.httpPort}`, token);
  }

  /** Calls a method. Rejects with `config` when no engine responds, or with the error that the engine reports, such as `denied`. */
  async call<T>(method: string, params: Record<string, string> = {}, body?: Uint8Array<ArrayBuffer>): Promise<T> {
    const query = new URLSearchParams({ method, token: this.#token, ...params });
    const signal = AbortSignal.timeout(body === undefined ? ANSWER_TIMEOUT_MS : UPLOAD_TIMEOUT_MS);
    const init: RequestInit = body === undefined ? { signal } : { method: "POST", body, signal };
    let answer: { result: T; error: { message: string } | null };
    try {
      answer = await (await fetch(`${this.#base}/server/api?${query}`, init)).json();
    } catch (cause) {
      const message = `no engine responds at ${this.#base}; start one, or give its --http-port`;
      throw new MillraceError("config", message, { cause });
    }
    if (answer.error !== null) throw new MillraceError("invalid_argument", answer.error.message);
    return answer.result;
  }
}
