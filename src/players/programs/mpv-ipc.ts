/** mpv's JSON IPC (its manual, "JSON IPC"): one JSON object per line, replies matched to commands by `request_id`. */
import { withSignal } from "../../bytes/deadline.ts";
import { guarded } from "../../bytes/guarded-clock.ts";
import { MillraceError } from "../../errors.ts";
import type { ByteConnection } from "../../ports.ts";
import { linesOf } from "../lines.ts";

/** Most commands without a reply. mpv replies within a frame, so more are waiting only when it hangs. */
const MAX_PENDING = 32;

/** The fields of an mpv event that are used. */
export interface MpvEvent {
  readonly event: string;
  /** With `end-file`: `eof`, `stop`, `quit`, `error`, `redirect`. */
  readonly reason?: string;
  /** With `end-file` and reason `error`. */
  readonly file_error?: string;
}

interface Pending {
  resolve(data: unknown): void;
  reject(error: MillraceError): void;
}

/** A connection to a running mpv. */
export class MpvIpc {
  readonly #connection: ByteConnection;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #pending = new Map<number, Pending>();
  readonly #listeners = new Set<(event: MpvEvent) => void>();
  readonly #failed: (error: unknown) => void;
  #lastId = 0;
  #closed = false;

  /** `failed` is called with exceptions in reading a line, those of listeners included. */
  constructor(connection: ByteConnection, failed: (error: unknown) => void) {
    this.#failed = failed;
    this.#connection = connection;
    this.#writer = connection.writable.getWriter();
    this.#writer.closed.catch(() => {});
    this.#read().catch(() => {}).finally(() => this.close());
  }

  /**
   * Sends a command; resolves with its `data`. Rejects with `unavailable` and mpv's error text, such as "property
   * unavailable", with `closed` when mpv has ended, or `too_busy`.
   */
  async command(args: readonly unknown[], signal: AbortSignal): Promise<unknown> {
    if (this.#closed) throw new MillraceError("closed", "mpv has ended");
    if (this.#pending.size >= MAX_PENDING) throw new MillraceError("too_busy", "mpv does not respond");
    const id = ++this.#lastId;
    const reply = new Promise<unknown>((resolve, reject) => this.#pending.set(id, { resolve, reject }));
    this.#writer.write(new TextEncoder().encode(`${JSON.stringify({ command: args, request_id: id })}\n`))
      .catch(() => this.close());
    try {
      return await withSignal(reply, signal);
    } finally {
      this.#pending.delete(id);
    }
  }

  /** Calls `listener` for each event until the returned function is called. */
  listen(listener: (event: MpvEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Drops the connection; pending commands reject. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const { reject } of this.#pending.values()) reject(new MillraceError("closed", "mpv has ended"));
    this.#connection.close();
  }

  async #read(): Promise<void> {
    const take = guarded((line: string) => this.#take(line), this.#failed);
    for await (const line of linesOf(this.#connection.readable)) take(line);
  }

  #take(line: string): void {
    const message = parse(line);
    if (message === null) return;
    if (typeof message["event"] === "string") {
      for (const listener of [...this.#listeners]) listener(message as unknown as MpvEvent);
      return;
    }
    const waiting = this.#pending.get(message["request_id"] as number);
    if (message["error"] === "success") waiting?.resolve(message["data"]);
    else waiting?.reject(new MillraceError("unavailable", `mpv: ${String(message["error"]).slice(0, 200)}`));
  }
}

/** The JSON object of a line; null for anything else, which mpv never sends. */
function parse(line: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? value as Record<string, unknown> : null;
  } catch {
    return null;
  }
}
