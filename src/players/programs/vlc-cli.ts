/** VLC's command line interface: commands of one line; its output mixes prompts, text for people, and values. */
import { withSignal } from "../../bytes/deadline.ts";
import { MillraceError } from "../../errors.ts";
import { linesOf } from "../lines.ts";

/** VLC's state as it reports it. */
export interface VlcStatus {
  /** VLC's own word: `playing`, `paused`, `stopped`. */
  readonly state: string;
  /** Null when nothing plays. */
  readonly timeSeconds: number | null;
  readonly lengthSeconds: number | null;
}

/** Most commands and queries that wait for their turn. VLC takes one within milliseconds; more wait only when it hangs. */
const MAX_WAITING = 32;
/** Prompts precede the next output, one for each earlier command that printed nothing. */
const PROMPTS = /^(?:> ?)+/;
const STATE = /^\( state (\w+) \)$/;

/** Commands to a running VLC, one after the other. */
export class VlcCli {
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #lines: AsyncGenerator<string>;
  /** The newest command or query; the next one waits for it. */
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #closed = false;
  #close!: () => void;
  readonly #over: Promise<never>;

  constructor(stdin: WritableStream<Uint8Array>, stdout: ReadableStream<Uint8Array>) {
    this.#writer = stdin.getWriter();
    this.#writer.closed.catch(() => {});
    this.#lines = linesOf(stdout);
    this.#over = new Promise<never>((_, reject) => {
      this.#close = () => reject(new MillraceError("closed", "VLC has ended"));
    });
    this.#over.catch(() => {});
  }

  /** Sends a command; resolves when VLC has it, since VLC does not report the result. Rejects with `closed` or `too_busy`. */
  send(command: string, signal: AbortSignal): Promise<void> {
    return this.#inTurn(() => this.#write(command), signal);
  }

  /** Waits for the next line that `pattern` matches. Rejects as `send`. */
  line(pattern: RegExp, signal: AbortSignal): Promise<RegExpExecArray> {
    return this.#inTurn(() => this.#find(pattern), signal);
  }

  /** VLC's current state. Rejects as `send`. */
  status(signal: AbortSignal): Promise<VlcStatus> {
    return this.#inTurn(async () => {
      await this.#write("status\nget_time\nget_length");
      const state = (await this.#find(STATE))[1]!;
      return { state, timeSeconds: await this.#number(), lengthSeconds: await this.#number() };
    }, signal);
  }

  /** To be called when VLC has ended: pending calls reject. */
  close(): void {
    this.#closed = true;
    this.#close();
  }

  /** Runs `work` in turn. Even if the caller gives up, its turn still reads the answer, so that no other caller gets it. */
  async #inTurn<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.#closed) throw new MillraceError("closed", "VLC has ended");
    if (this.#waiting >= MAX_WAITING) throw new MillraceError("too_busy", "VLC does not respond");
    this.#waiting++;
    const turn = this.#last.catch(() => {}).then(work).finally(() => this.#waiting--);
    this.#last = turn;
    return await withSignal(Promise.race([turn, this.#over]), signal);
  }

  async #write(command: string): Promise<void> {
    await this.#writer.write(new TextEncoder().encode(`${command}\n`));
  }

  async #find(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(await this.#next());
      if (match !== null) return match;
    }
  }

  /** Reads a number; VLC prints an empty line for a value that it does not have now. */
  async #number(): Promise<number | null> {
    const line = await this.#next();
    return /^\d{1,9}$/.test(line) ? Number(line) : null;
  }

  async #next(): Promise<string> {
    const { done, value } = await this.#lines.next();
    if (done) throw new MillraceError("closed", "VLC has ended");
    return value.replace(PROMPTS, "");
  }
}
