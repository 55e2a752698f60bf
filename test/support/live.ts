/** A broadcast over real connections: one engine sends a clip in a loop, in real time, and another serves viewers. */
import type { EngineOptions } from "../../src/engine.ts";
import type { Broadcast } from "../../src/live/broadcast/broadcast-types.ts";
import type { LiveInput, LiveInputEvent } from "../../src/live/broadcast/input.ts";
import { EndlessClip } from "../playback/live-support.ts";
import { type ServedEngine, serveEngine } from "./engine.ts";

/** How often the source hands data over, ms. */
const STEP_MS = 40;

/** A clip that is broadcast in real time until the test ends it. */
export class ClipInput implements LiveInput {
  readonly #media: EndlessClip;
  #ended = false;

  /** `clip`: its name or its bytes; `durationS`: of one pass. Default the clip `ts-188.ts`. */
  constructor(clip?: string | Uint8Array, durationS?: number) {
    this.#media = new EndlessClip(clip, durationS);
  }

  /** The source ends. */
  end(): void {
    this.#ended = true;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<LiveInputEvent> {
    let last = performance.now();
    while (!this.#ended) {
      await new Promise((resolve) => setTimeout(resolve, STEP_MS));
      const now = performance.now();
      yield { kind: "data", bytes: this.#media.next(now - last) };
      last = now;
    }
  }
}

/** A running broadcast. */
export interface OnAir {
  readonly sender: ServedEngine;
  readonly viewer: ServedEngine;
  /** Changes with `restart`. */
  broadcast: Broadcast;
  input: ClipInput;
  /** Names the broadcast and where it can be joined. */
  readonly magnet: string;
  /** Stops the broadcaster silently, and `pauseMs` later continues under the same id; needs `directory`. */
  restart(pauseMs: number): Promise<void>;
  close(): Promise<void>;
}

/** How a clip is broadcast. */
export interface OnAirOptions {
  readonly clip?: string | Uint8Array;
  readonly durationS?: number;
  readonly viewer?: EngineOptions;
  readonly sender?: EngineOptions;
  /** Of the broadcast's state. */
  readonly directory?: string;
}

/** Puts a clip on the air. */
export async function onAir(options: OnAirOptions = {}): Promise<OnAir> {
  const sender = await serveEngine(options.sender);
  const viewer = await serveEngine({ startTimeoutMs: 15_000, ...options.viewer });
  const go = async () => {
    const input = new ClipInput(options.clip, options.durationS);
    const broadcast = await sender.engine.broadcast({
      input,
      name: "channel",
      directory: options.directory ?? null,
      bytesPerS: 25_000,
    });
    return { input, broadcast };
  };
  const first = await go();
  const magnet = `${first.broadcast.magnet}&x.pe=${sender.peer}`;
  const air: OnAir = {
    ...first,
    sender,
    viewer,
    magnet,
    async restart(pauseMs) {
      await air.broadcast.close();
      air.input.end();
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      Object.assign(air, await go());
    },
    async close() {
      air.input.end();
      await viewer.close();
      await air.broadcast.close();
      await sender.close();
    },
  };
  return air;
}
