/** Work that outlives the call that started it: its progress, errors and end. Kept in memory, for this run only. */
import { abortError, type ErrorCode, MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";

/** Where a task's work is: `here` in bytes and database, `elsewhere` mostly in waiting for servers or peers. */
export type TaskPlace = "here" | "elsewhere";

/** Most tasks running at once. The database has one writer; servers are slow, and none may keep the user's bytes waiting. */
const MAX_RUNNING: Readonly<Record<TaskPlace, number>> = { here: 2, elsewhere: 6 };
/** Most tasks of one place waiting for their turn. */
const MAX_QUEUED = 32;
/** Ended tasks that can still be asked about. */
const MAX_ENDED = 200;
/** Most errors kept per task; all are counted. */
const MAX_ERRORS = 100;

/** State of a task. The last three are final. */
export type TaskState = "queued" | "running" | "done" | "failed" | "cancelled";

/** Something that went wrong while the task ran. */
export interface TaskError {
  /** Line of the list, from 1; 0 when it is not about a line. */
  readonly line: number;
  readonly message: string;
}

/** Why a task failed: a code for programs, and words. */
export interface TaskFailure {
  readonly code: ErrorCode;
  readonly message: string;
}

/** A task as callers see it. */
export interface TaskStatus {
  readonly id: number;
  readonly kind: string;
  readonly state: TaskState;
  /** Steps done, of `total`; what a step is depends on the kind. */
  readonly done: number;
  /** -1 while unknown. */
  readonly total: number;
  /** Steps done that changed nothing. */
  readonly skipped: number;
  readonly errors: readonly TaskError[];
  readonly errorCount: number;
  /** Why it failed. */
  readonly failure: TaskFailure | null;
}

/** Receives the progress of a running task. */
export interface TaskProgress {
  done: number;
  total: number;
  skipped: number;
  readonly signal: AbortSignal;
  /** Counts an error, and keeps it if there is room. */
  report(error: TaskError): void;
}

class Task implements TaskProgress {
  readonly id: number;
  readonly kind: string;
  readonly work: (progress: TaskProgress) => Promise<void>;
  readonly control = new AbortController();
  state: TaskState = "queued";
  done = 0;
  total = -1;
  skipped = 0;
  readonly errors: TaskError[] = [];
  errorCount = 0;
  failure: TaskFailure | null = null;
  end: () => void = () => {};
  readonly ended: Promise<void>;
  /** Runs once, after everything else of the task. */
  readonly tidyUp: () => Promise<void>;
  readonly place: TaskPlace;

  constructor(
    id: number,
    kind: string,
    work: (progress: TaskProgress) => Promise<void>,
    tidyUp: () => Promise<void>,
    place: TaskPlace,
  ) {
    this.id = id;
    this.kind = kind;
    this.work = work;
    this.tidyUp = tidyUp;
    this.place = place;
    this.ended = new Promise((resolve) => this.end = resolve);
  }

  get signal(): AbortSignal {
    return this.control.signal;
  }

  report(error: TaskError): void {
    this.errorCount++;
    if (this.errors.length < MAX_ERRORS) this.errors.push(error);
  }
}

/** The tasks of one engine, by number. */
export class TaskList {
  readonly #clock: Clock;
  readonly #onFault: (kind: string, error: unknown) => void;
  readonly #tasks = new Map<number, Task>();
  readonly #queue: Task[] = [];
  readonly #running: Record<TaskPlace, number> = { here: 0, elsewhere: 0 };
  #lastId: number;
  #isClosed = false;

  /** `onFault` is called with failures that are faults of the engine itself. */
  constructor(clock: Clock, onFault: (kind: string, error: unknown) => void) {
    this.#clock = clock;
    this.#onFault = onFault;
    // Ids begin at the clock, so that an id of an earlier run is not mistaken for one of this run.
    this.#lastId = Math.floor(this.#clock.now() / 1000) % 1_000_000_000;
  }

  /**
   * Queues `work`, which runs after older tasks of the same place, and returns the task's id; `tidyUp` runs before the task ends, even when it was cancelled before its turn.
   * Throws `too_busy` when too many wait, `closed` while the engine closes; then neither runs.
   */
  start(
    kind: string,
    work: (progress: TaskProgress) => Promise<void>,
    tidyUp: () => Promise<void> = () => Promise.resolve(),
    place: TaskPlace = "here",
  ): number {
    if (this.#isClosed) throw new MillraceError("closed", "the engine is closing");
    if (this.#queue.filter((task) => task.place === place).length >= MAX_QUEUED) {
      throw new MillraceError("too_busy", "too many tasks are waiting; try later");
    }
    const task = new Task(++this.#lastId, kind, work, tidyUp, place);
    this.#tasks.set(task.id, task);
    this.#queue.push(task);
    this.#next();
    return task.id;
  }

  /** All remembered tasks, the newest first. */
  list(): readonly TaskStatus[] {
    return [...this.#tasks.keys()].reverse().map((id) => this.status(id));
  }

  /** State of a task. Throws `not_found` for an id that is unknown or forgotten. */
  status(id: number): TaskStatus {
    const { kind, state, done, total, skipped, errors, errorCount, failure } = this.#find(id);
    return { id, kind, state, done, total, skipped, errors: [...errors], errorCount, failure };
  }

  /** Stops a task; what it has done so far stays. A task that ended stays as it is. Throws `not_found`. */
  cancel(id: number): void {
    const task = this.#find(id);
    if (task.state !== "queued" && task.state !== "running") return;
    task.control.abort(new MillraceError("aborted", "the task was cancelled"));
    const at = this.#queue.indexOf(task);
    if (at < 0) return;
    this.#queue.splice(at, 1);
    task.state = "cancelled";
    void this.#tidied(task).then(() => this.#over(task, "cancelled"));
  }

  /** Resolves when the task has ended, whatever its outcome. */
  ended(id: number): Promise<void> {
    return this.#find(id).ended;
  }

  /** Cancels everything and waits for it. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const id of [...this.#tasks.keys()]) this.cancel(id);
    await Promise.all([...this.#tasks.values()].map((task) => task.ended));
  }

  #find(id: number): Task {
    const task = this.#tasks.get(id);
    if (task === undefined) throw new MillraceError("not_found", `no task ${id}`);
    return task;
  }

  #next(): void {
    for (;;) {
      const at = this.#queue.findIndex(({ place }) => this.#running[place] < MAX_RUNNING[place]);
      if (at < 0) return;
      const task = this.#queue.splice(at, 1)[0]!;
      this.#running[task.place]++;
      task.state = "running";
      void this.#run(task);
    }
  }

  async #run(task: Task): Promise<void> {
    let state: TaskState = "done";
    try {
      await task.work(task);
      if (task.signal.aborted) throw abortError(task.signal);
    } catch (error) {
      state = task.signal.aborted ? "cancelled" : "failed";
      const told = error instanceof MillraceError && error.code !== "internal" ? error : null;
      const { code, message } = told ?? { code: "internal", message: "internal error" } as const;
      if (state === "failed") task.failure = { code, message };
      if (state === "failed" && told === null) this.#onFault(task.kind, error);
    }
    await this.#tidied(task);
    this.#running[task.place]--;
    this.#over(task, state);
    this.#next();
  }

  async #tidied(task: Task): Promise<void> {
    try {
      await task.tidyUp();
    } catch (error) {
      this.#onFault(task.kind, error);
    }
  }

  #over(task: Task, state: TaskState): void {
    task.state = state;
    task.end();
    const ended = [...this.#tasks.values()].filter(({ state }) => state !== "queued" && state !== "running");
    for (const old of ended.slice(0, Math.max(0, ended.length - MAX_ENDED))) this.#tasks.delete(old.id);
  }
}
