/** Where a file was left off: kept by the engine for all devices, and by the browser where the engine wants a token. */
import { call } from "./engine.ts";

/** A position is worth keeping from here on, s, and is forgotten this long before the end. */
const RESUME_FROM_S = 30;
/** Between two messages to the engine while it plays, ms. */
const TELL_EVERY_MS = 10_000;

/** The position of one file. */
export class WatchedPosition {
  readonly #infohash: string;
  readonly #fileIndex: string;
  readonly #key: string;
  #toldMs = -Infinity;
  #told = 0;
  #newest: { readonly at: number; readonly duration: number } | null = null;

  constructor(infohash: string, fileIndex: string) {
    this.#infohash = infohash;
    this.#fileIndex = fileIndex;
    this.#key = `millrace-at/${infohash}/${fileIndex}`;
  }

  /** Where to continue, s; 0: at the beginning. */
  async find(): Promise<number> {
    try {
      const params = { infohash: this.#infohash, file_index: this.#fileIndex };
      return (await call<{ position: number }>("get_position", params)).position;
    } catch {
      return Number(localStorage.getItem(this.#key));
    }
  }

  /** Notes where the picture is; call as often as it moves. */
  note(at: number, duration: number): void {
    if (!Number.isFinite(duration) || (at < RESUME_FROM_S && this.#told === 0)) return;
    const isOver = at > duration - RESUME_FROM_S;
    this.#newest = { at: at < RESUME_FROM_S || isOver ? 0 : Math.floor(at), duration: Math.floor(duration) };
    if (performance.now() - this.#toldMs >= TELL_EVERY_MS) this.tell();
  }

  /** Sends the engine the newest position at once, when the page is left or paused. */
  tell(): void {
    if (this.#newest === null || this.#newest.at === this.#told) return;
    const { at, duration } = this.#newest;
    this.#toldMs = performance.now();
    this.#told = at;
    if (at === 0) localStorage.removeItem(this.#key);
    else localStorage.setItem(this.#key, String(at));
    const params = {
      infohash: this.#infohash,
      file_index: this.#fileIndex,
      position: `${at}`,
      duration: `${duration}`,
    };
    call("set_position", params).catch(() => {});
  }
}
