/** Pictures: their bytes decide their type, whatever the sender says. They are kept for a while. */
import { MillraceError } from "../../errors.ts";
import type { Clock } from "../../ports.ts";

/** Largest picture fetched, bytes. */
export const MAX_PICTURE_BYTES = 1024 * 1024;
/** All kept pictures together, bytes: some hundreds of logos. */
const MAX_KEPT_BYTES = 16 * 1024 * 1024;
/** How long one is kept, here and by clients. */
export const KEEP_MS = 3_600_000;

/** First bytes of the formats that every client shows, as latin-1. */
const FORMATS: readonly (readonly [RegExp, string])[] = [
  // deno-lint-ignore no-control-regex
  [/^\x89PNG\r\n\x1a\n/, "image/png"],
  [/^\xff\xd8\xff/, "image/jpeg"],
  [/^GIF8[79]a/, "image/gif"],
  [/^RIFF[\s\S]{4}WEBP/, "image/webp"],
];
/** Bytes that identify a format. */
const HEAD_BYTES = 12;

/** MIME type of a PNG, JPEG, GIF or WebP picture; null for anything else. */
export function pictureType(bytes: Uint8Array): string | null {
  const head = String.fromCharCode(...bytes.subarray(0, HEAD_BYTES));
  return FORMATS.find(([start]) => start.test(head))?.[1] ?? null;
}

/** Bytes looked at for the root element of an SVG; licence texts and DTDs stand before it in some. */
const SVG_HEAD_BYTES = 64 * 1024;
/** What may come before the root element (XML 1.0, section 2.8): how each such part begins and ends. */
const PROLOG: readonly (readonly [string, string])[] = [["<?", "?>"], ["<!--", "-->"], ["<!DOCTYPE", ">"]];

/** Whether `bytes` are an SVG document: UTF-8 text whose first element is `svg`. */
export function isSvg(bytes: Uint8Array): boolean {
  let text = new TextDecoder().decode(bytes.subarray(0, SVG_HEAD_BYTES)).trimStart();
  for (;;) {
    const [start, end] = PROLOG.find(([start]) => text.startsWith(start)) ?? [];
    if (start === undefined || end === undefined) return /^<svg[\s/>]/.test(text);
    // A DTD may hold declarations of its own.
    const subset = start === "<!DOCTYPE" ? /^[^>[]*\[/.exec(text)?.[0].length ?? 0 : start.length;
    const from = subset > start.length ? text.indexOf("]", subset) : start.length;
    const at = from < 0 ? -1 : text.indexOf(end, from);
    if (at < 0) return false;
    text = text.slice(at + end.length).trimStart();
  }
}

/**
 * A picture as a response: the only kind of result that is not JSON. An SVG passes unchanged: players and `<img>` run
 * nothing in it, and `Content-Security-Policy: sandbox` keeps it harmless if it is opened as a page.
 */
export class Picture {
  readonly bytes: Uint8Array;
  readonly type: string;

  /** Throws `not_found` when `bytes` are no picture. */
  constructor(bytes: Uint8Array) {
    const type = pictureType(bytes) ?? (isSvg(bytes) ? "image/svg+xml" : null);
    if (type === null) throw new MillraceError("not_found", "there is no usable picture");
    this.bytes = bytes;
    this.type = type;
  }
}

/** How long a failure is remembered: a page full of dead logos must not ask for them again and again. */
const KEEP_FAILURE_MS = 60_000;
/** Failures remembered at most. */
const MAX_FAILURES = 1000;

/** Pictures by key, oldest out first. */
export class PictureCache {
  readonly #clock: Clock;
  readonly #kept = new Map<string, { picture: Picture; untilMs: number }>();
  readonly #failures = new Map<string, { error: unknown; untilMs: number }>();
  readonly #coming = new Map<string, Promise<Picture>>();
  #bytes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The kept picture, or what `make` returns; callers at the same time share one `make`. Its failures count for a minute. */
  get(key: string, make: () => Promise<Picture>): Promise<Picture> {
    const nowMs = this.#clock.monotonic();
    const known = this.#kept.get(key);
    if (known !== undefined && known.untilMs > nowMs) return Promise.resolve(known.picture);
    const failed = this.#failures.get(key);
    if (failed !== undefined && failed.untilMs > nowMs) return Promise.reject(failed.error);
    let coming = this.#coming.get(key);
    if (coming === undefined) {
      coming = this.#make(key, make).finally(() => this.#coming.delete(key));
      this.#coming.set(key, coming);
    }
    return coming;
  }

  async #make(key: string, make: () => Promise<Picture>): Promise<Picture> {
    this.#failures.delete(key);
    try {
      const picture = await make();
      this.#keep(key, picture);
      return picture;
    } catch (error) {
      this.#failures.set(key, { error, untilMs: this.#clock.monotonic() + KEEP_FAILURE_MS });
      if (this.#failures.size > MAX_FAILURES) this.#failures.delete(this.#failures.keys().next().value!);
      throw error;
    }
  }

  #keep(key: string, picture: Picture): void {
    this.#drop(key);
    this.#kept.set(key, { picture, untilMs: this.#clock.monotonic() + KEEP_MS });
    this.#bytes += picture.bytes.length;
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= MAX_KEPT_BYTES) break;
      this.#drop(oldest);
    }
  }

  #drop(key: string): void {
    this.#bytes -= this.#kept.get(key)?.picture.bytes.length ?? 0;
    this.#kept.delete(key);
  }
}
