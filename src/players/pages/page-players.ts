/** Open web pages of the engine as players: each reads commands from a stream of lines and reports its state. */
import { withSignal } from "../../bytes/deadline.ts";
import { faultFields, guardedClock } from "../../bytes/guarded-clock.ts";
import { MillraceError } from "../../errors.ts";
import type { Clock, Logger, Timer } from "../../ports.ts";
import {
  IDLE,
  type Player,
  type PlayerCommand,
  type PlayerDevice,
  type PlayerFinder,
  type PlayerStatus,
  type PlayerStream,
} from "../player-device.ts";

/** Most listening pages in all, each with its own connection, and of one machine. */
const MAX_PAGES = 32;
const MAX_PAGES_PER_HOST = 8;
/** Interval of empty lines, ms: they keep proxies from dropping the connection, and reveal that a page is gone. */
const PING_EVERY_MS = 15_000;
/** Most lines that a page has not read yet: a page that reads none is gone or hangs. */
const MAX_UNREAD_LINES = 8;
/** Longest error text of a page that is shown, characters. */
const MAX_REASON_CHARS = 200;

/** A page's report about its stream. */
export interface PageReport {
  /** Number of the stream, from the line `open`. Reports about other streams are outdated. */
  readonly turn: number;
  readonly state: "playing" | "paused" | "ended" | "failed";
  readonly positionSeconds: number | null;
  readonly durationSeconds: number | null;
  /** Reason of the state `failed`. */
  readonly reason: string;
}

/** A listening page's connection. */
export interface PageSeat {
  /** One JSON object per line: `{seat}` first, then `{open}`, `{command}` and `{ping}`. The page leaves by cancelling it. */
  readonly lines: ReadableStream<Uint8Array>;
}

/** Finder of pages that are players. */
export class PagePlayers implements PlayerFinder {
  readonly #ports: { readonly clock: Clock; readonly log: Logger };
  /** By the secret that the page sends with its reports. */
  readonly #pages = new Map<string, PagePlayer>();

  constructor(ports: { readonly clock: Clock; readonly log: Logger }) {
    this.#ports = ports;
  }

  /** Adds a page at `host`. Throws `too_busy`. */
  join(host: string, isLocal: boolean): PageSeat {
    const here = [...this.#pages.values()].filter((page) => page.client === host);
    if (this.#pages.size >= MAX_PAGES || here.length >= MAX_PAGES_PER_HOST) {
      throw new MillraceError("too_busy", "too many pages listen already: close one");
    }
    const place = isLocal ? "this machine" : host;
    // Use the lowest number that no other page of that machine has.
    let number = 1;
    while (here.some((page) => page.number === number)) number++;
    const secret = secretOf();
    const name = `Web page on ${place}${number === 1 ? "" : ` (${number})`}`;
    const failed = (error: unknown) => {
      this.#ports.log.log("error", "a fault of the engine: a page no longer listens", faultFields(error));
      page.leave();
    };
    const clock = guardedClock(this.#ports.clock, failed);
    const page: PagePlayer = new PagePlayer(
      clock,
      { client: host, number, name, secret },
      () => this.#pages.delete(secret),
    );
    this.#pages.set(secret, page);
    return { lines: page.lines };
  }

  /** Takes a report. Throws `not_found` for a page that is not listening. */
  report(secret: string, report: PageReport): void {
    const page = this.#pages.get(secret);
    if (page === undefined) throw new MillraceError("not_found", "no page listens with this seat");
    page.take(report);
  }

  list(): Promise<readonly PlayerDevice[]> {
    return Promise.resolve([...this.#pages.values()]);
  }

  close(): Promise<void> {
    for (const page of [...this.#pages.values()]) page.leave();
    return Promise.resolve();
  }
}

/** One page as a player. */
class PagePlayer implements PlayerDevice {
  readonly facts: Player;
  readonly localOnly = false;
  readonly output = "hls";
  // The page knows the engine by its own address, so it gets only the path.
  readonly host = null;
  readonly client: string;
  readonly number: number;
  readonly lines: ReadableStream<Uint8Array>;
  readonly #clock: Clock;
  readonly #left: () => void;
  readonly #gone = new AbortController();
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #ping: Timer | null = null;
  #turn = 0;
  #report: PageReport | null = null;
  #heard: (() => void) | null = null;

  constructor(
    clock: Clock,
    facts: { readonly client: string; readonly number: number; readonly name: string; readonly secret: string },
    left: () => void,
  ) {
    this.facts = {
      id: `page:${crypto.randomUUID()}`,
      type: "proxy",
      protocol: null,
      name: facts.name,
      icon: null,
    };
    this.client = facts.client;
    this.number = facts.number;
    this.#clock = clock;
    this.#left = left;
    this.lines = new ReadableStream<Uint8Array>({
      start: (controller) => void (this.#controller = controller),
      cancel: () => this.leave(),
    }, { highWaterMark: MAX_UNREAD_LINES });
    this.#say({ seat: facts.secret });
    this.#keepAlive();
  }

  async open(stream: PlayerStream, signal: AbortSignal): Promise<void> {
    const turn = ++this.#turn;
    this.#report = null;
    const path = stream.path ?? stream.url.slice(stream.url.indexOf("/engine/"));
    this.#say({ open: { turn, path, title: stream.title, is_live: stream.isLive } });
    const either = AbortSignal.any([signal, this.#gone.signal]);
    for (;;) {
      const report = this.#reported();
      if (report?.state === "playing" || report?.state === "paused") return;
      if (report !== null) {
        const why = stream.trouble() ?? (report.reason.slice(0, MAX_REASON_CHARS) || "it ended at once");
        throw new MillraceError("unavailable", `the page does not play it: ${why}`);
      }
      await withSignal(new Promise<void>((resolve) => (this.#heard = resolve)), either);
    }
  }

  status(): Promise<PlayerStatus> {
    const report = this.#reported();
    if (report?.state !== "playing" && report?.state !== "paused") return Promise.resolve(IDLE);
    const { state, positionSeconds, durationSeconds } = report;
    return Promise.resolve({ state, positionSeconds, durationSeconds });
  }

  async control(command: PlayerCommand): Promise<void> {
    if ((await this.status()).state === "idle") throw new MillraceError("conflict", "the page plays nothing now");
    this.#say({ command: { turn: this.#turn, ...command } });
    if (command.kind === "stop") this.#report = null;
  }

  /** Takes a report of the page. */
  take(report: PageReport): void {
    if (report.turn !== this.#turn) return;
    this.#report = report;
    this.#heard?.();
  }

  /** To be called when the page no longer listens. */
  leave(): void {
    if (this.#gone.signal.aborted) return;
    this.#ping?.cancel();
    this.#gone.abort(new MillraceError("closed", "the page was closed"));
    try {
      this.#controller.close();
    } catch {
      // The page has left by itself; its stream is closed already.
    }
    this.#left();
  }

  #reported(): PageReport | null {
    return this.#report;
  }

  #keepAlive(): void {
    this.#ping = this.#clock.setTimeout(() => {
      this.#say({ ping: 1 });
      if (!this.#gone.signal.aborted) this.#keepAlive();
    }, PING_EVERY_MS);
  }

  #say(line: Readonly<Record<string, unknown>>): void {
    if (this.#gone.signal.aborted) throw new MillraceError("closed", "the page was closed");
    if ((this.#controller.desiredSize ?? 0) <= 0) return this.leave();
    this.#controller.enqueue(new TextEncoder().encode(`${JSON.stringify(line)}\n`));
  }
}

function secretOf(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
