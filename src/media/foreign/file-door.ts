/**
 * Serves a file, which may still have to be fetched, to a program on this machine: over HTTP on the loopback interface, with
 * ranges, under an address that nobody can guess. A pipe would do for reading from beginning to end, but many files have
 * their index at the end, and seeking needs it.
 */
import { toHex } from "../../bytes/hex.ts";
import type { ByteSource } from "../../bytes/source.ts";
import { abortError, MillraceError } from "../../errors.ts";
import type { HttpPort, HttpServer } from "../../ports.ts";

/** Bytes of the secret in an address. The program's arguments show it to other users of the machine while it runs. */
const SECRET_BYTES = 16;
/** Bytes read at a time. */
const CHUNK_BYTES = 128 * 1024;
/** Most that a program may read: this many times the file's size plus this many bytes. A program that reads more is in a loop. */
const MOST_TIMES = 8;
const SPARE_BYTES = 256 * 1024 * 1024;

/** An open door: one program reads one file through it. */
export class Door {
  readonly url: string;
  readonly #closed: () => void;
  readonly #ending = new AbortController();
  readonly #source: ByteSource;
  #waiting = 0;
  #servedBytes = 0;
  #failure: unknown = null;

  /** `closed` is called once, when the door is closed. */
  constructor(url: string, source: ByteSource, closed: () => void) {
    this.url = url;
    this.#source = source;
    this.#closed = closed;
  }

  /** Whether the program waits for bytes that are not here yet. */
  get isWaiting(): boolean {
    return this.#waiting > 0;
  }

  /** Bytes sent to the program. */
  get servedBytes(): number {
    return this.#servedBytes;
  }

  /** Why a read of the program failed; null when none did. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Ends all reading. Idempotent. */
  close(): void {
    if (this.#ending.signal.aborted) return;
    this.#ending.abort(new MillraceError("closed", "nobody reads the file any more"));
    this.#closed();
  }

  /** Answers a request of the program. */
  answer(request: Request): Response {
    const [, from = "0", to] = /^bytes=(\d{1,15})-(\d{1,15})?$/.exec(request.headers.get("range") ?? "") ?? [];
    const start = Number(from);
    const end = Math.min(this.#source.sizeBytes, to === undefined ? Infinity : Number(to) + 1);
    const headers = { "accept-ranges": "bytes", "content-type": "application/octet-stream", "connection": "close" };
    if (start >= end) {
      const range = `bytes */${this.#source.sizeBytes}`;
      return new Response(null, { status: 416, headers: { ...headers, "content-range": range } });
    }
    return new Response(request.method === "HEAD" ? null : this.#body(start, end), {
      status: 206,
      headers: {
        ...headers,
        "content-length": String(end - start),
        "content-range": `bytes ${start}-${end - 1}/${this.#source.sizeBytes}`,
      },
    });
  }

  #body(start: number, end: number): ReadableStream<Uint8Array> {
    const left = new AbortController();
    const signal = AbortSignal.any([left.signal, this.#ending.signal]);
    let at = start;
    return new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        try {
          const length = Math.min(CHUNK_BYTES - at % CHUNK_BYTES, end - at);
          controller.enqueue(await this.#read(at, length, signal));
          at += length;
          if (at >= end) controller.close();
        } catch (error) {
          if (!signal.aborted) this.#failure ??= error;
          controller.error(error);
        }
      },
      cancel: () => left.abort(new MillraceError("aborted", "the program left")),
    }, { highWaterMark: 0 });
  }

  async #read(at: number, length: number, signal: AbortSignal): Promise<Uint8Array> {
    this.#servedBytes += length;
    if (this.#servedBytes > MOST_TIMES * this.#source.sizeBytes + SPARE_BYTES) {
      throw new MillraceError("bad_media", "the file is damaged: reading it goes in circles");
    }
    if (signal.aborted) throw abortError(signal);
    this.#waiting++;
    try {
      return await this.#source.read(at, length, { signal });
    } finally {
      this.#waiting--;
    }
  }
}

/** Opens doors. It listens only while a door is open. */
export class DoorKeeper {
  readonly #http: HttpPort;
  readonly #doors = new Map<string, Door>();
  #server: Promise<HttpServer> | null = null;

  constructor(http: HttpPort) {
    this.#http = http;
  }

  /** Opens a door to `source`. Rejects as `HttpPort.serve`. */
  async open(source: ByteSource): Promise<Door> {
    const secret = toHex(crypto.getRandomValues(new Uint8Array(SECRET_BYTES)));
    // Count the door before the wait, so that the listener is not closed meanwhile.
    const closed = () => this.#leave(secret);
    this.#doors.set(secret, new Door("", source, closed));
    try {
      const { address } = await (this.#server ??= this.#listen());
      const door = new Door(`http://127.0.0.1:${address.port}/${secret}`, source, closed);
      this.#doors.set(secret, door);
      return door;
    } catch (error) {
      this.#leave(secret);
      throw error;
    }
  }

  #listen(): Promise<HttpServer> {
    return this.#http.serve({ host: "127.0.0.1", port: 0 }, (request) => {
      const door = this.#doors.get(new URL(request.url).pathname.slice(1));
      return door === undefined ? new Response("not found\n", { status: 404 }) : door.answer(request);
    });
  }

  #leave(secret: string): void {
    this.#doors.delete(secret);
    if (this.#doors.size > 0) return;
    this.#server?.then((server) => server.close(0), () => {});
    this.#server = null;
  }
}
