/** What happens at a source, as tests tell it. */
import { POLICY } from "../../src/live/node/policy.ts";
import { seededRandom } from "../simulation/event-queue.ts";
import { GENUINE, simulatedHeader } from "../simulation/live-network.ts";
import { type Neighbour, PIECE_BYTES, Stage } from "./support.ts";

/** Bitrate of `Stage`. */
export const BYTES_PER_S = 125_000;

/** A source whose line carries eight places; one child has them all, `below` is fed through it, and a liar has just come. */
export function crowded(): { stage: Stage; child: Neighbour; liar: Neighbour; below: Neighbour } {
  const stage = new Stage({
    role: "source",
    uplinkBytesPerS: BYTES_PER_S / POLICY.sourceLoadLimit + 1,
    random: seededRandom(1),
  });
  publish(stage, 5);
  const child = proven(stage, BYTES_PER_S, "child");
  stage.says(child, { type: "subscribe", mask: 0xff, from: 6 });
  const below = proven(stage, BYTES_PER_S);
  vouch(stage, below, child);
  stage.clock.advance(100);
  stage.node.tick();
  const liar = proven(stage, 40 * BYTES_PER_S);
  return { stage, child, liar, below };
}

/** A neighbour that reports this uplink, and has sent a block. */
export function proven(stage: Stage, upBytesPerS: number, host?: string): Neighbour {
  const neighbour = stage.neighbour({ upBytesPerS, ...(host === undefined ? {} : { host }) });
  neighbour.peer.deliveredBytes = 1;
  return neighbour;
}

/** The source has the next piece. */
export function publish(stage: Stage, seq: number): void {
  const timestampMs = stage.clock.now();
  const header = simulatedHeader({ seq, timestampMs, flags: 1, lengthBytes: PIECE_BYTES });
  stage.node.publish({ header, data: GENUINE.subarray(0, PIECE_BYTES) });
}

/** `below` shows the path that the source reported to `child`: it is fed through that one. */
export function vouch(stage: Stage, below: Neighbour, child: Neighbour): void {
  const { paths } = child.link.of("place").findLast(({ pathMask }) => pathMask === 0xff)!;
  stage.says(below, placeOf(paths!));
}

/** A PLACE on a path of these members. */
export function placeOf(paths: Uint32Array, upBytesPerS = BYTES_PER_S) {
  const depths = new Uint8Array(8).fill(3);
  return { type: "place", upBytesPerS, depths, bars: new Uint8Array(8), paths, pathMask: 0xff } as const;
}

/** Lets `ms` pass in ticks, in which `below` shows what it showed before. */
export function pass(stage: Stage, ms: number): void {
  for (let left = ms; left > 0; left -= 100) {
    stage.clock.advance(100);
    stage.node.tick();
  }
}
