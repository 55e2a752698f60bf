/** The broadcasts that an engine sends: none outlives it, not even one that is still starting. */
import { abortError, MillraceError } from "../errors.ts";
import { type BroadcastParts, startBroadcast } from "../live/broadcast/broadcast.ts";
import type { Broadcast, BroadcastOptions } from "../live/broadcast/broadcast-types.ts";

/** Starts broadcasts and ends all of them with the engine. */
export class SentBroadcasts {
  readonly #parts: BroadcastParts;
  readonly #all = new Set<Promise<Broadcast>>();
  readonly #closing = new AbortController();

  constructor(parts: BroadcastParts) {
    this.#parts = parts;
  }

  /** As `startBroadcast`; rejects with `closed` when the engine ends first. */
  async start(options: BroadcastOptions): Promise<Broadcast> {
    const { signal: ending } = this.#closing;
    if (ending.aborted) throw abortError(ending);
    const signal = options.signal === undefined ? ending : AbortSignal.any([options.signal, ending]);
    const forget = () => void this.#all.delete(starting);
    const starting: Promise<Broadcast> = startBroadcast({ ...this.#parts, closed: forget }, { ...options, signal });
    this.#all.add(starting);
    starting.catch(forget);
    return await starting;
  }

  /** Ends all broadcasts, including those still starting, and waits for them. */
  async close(): Promise<void> {
    this.#closing.abort(new MillraceError("closed", "the engine is closing"));
    await Promise.all([...this.#all].map(async (starting) => {
      const broadcast = await starting.catch(() => null);
      await broadcast?.close();
    }));
  }
}
