/** A source that breaks off, jumps or changes after some seconds, as stations and encoders do it. */
import {
  all,
  clockSet,
  encoded,
  followedBy,
  type Habit,
  hole,
  maps,
  mapSection,
  moved,
  paused,
  restarted,
  type SentPacket,
  SOUND_PID,
  VIDEO_PID,
} from "../../test/support/ts-shapes.ts";

/** How long the source goes on after it broke, ms: longer than any player is behind. */
const AFTER_MS = 24_000;
const SILENT_MS = 6000;
/** Between two breaks, ms. */
const BETWEEN_MS = 8000;

/** The clip over and over, before anything breaks. */
export const clipFor = (ms: number): SentPacket[] => encoded("ts-188.ts", ms);

/** One kind of break. */
export interface GapShape {
  readonly name: string;
  /** What comes from `atMs` on, where the source breaks. */
  from(atMs: number): SentPacket[];
}

/** The streams of the clip on other PIDs, and a map that says so. */
const elsewhere: Habit = all(
  moved(VIDEO_PID, 0x110),
  moved(SOUND_PID, 0x111),
  maps([mapSection([[0x1b, 0x110], [0x0f, 0x111]], { pcrPid: 0x110, version: 1 })]),
);

/**
 * All kinds of break, in a clip that comes over and over. `other`: a transport stream of the same codecs with pictures of
 * another size and sound of another rate.
 */
export function gapShapes(other: Uint8Array): GapShape[] {
  const shape = (name: string, make: (atMs: number) => readonly SentPacket[]): GapShape => ({
    name,
    from: (atMs) => make(atMs).filter((packet) => packet.atMs >= atMs),
  });
  const whole = (atMs: number) => clipFor(atMs + AFTER_MS);
  const after = clipFor(AFTER_MS);
  return [
    shape("no break", whole),
    shape("nothing comes for 6 s", (at) => hole(at, at + SILENT_MS)(clipFor(at + SILENT_MS + AFTER_MS))),
    shape("the sender pauses for 6 s, and its clock with it", (at) => paused(at, SILENT_MS)(whole(at))),
    shape("the encoder begins again", (at) => restarted(at)(after)),
    shape("pictures and sound on other PIDs", (at) => followedBy(whole(at), at, elsewhere(after))),
    shape("the clock is set ahead by 5 s", (at) => clockSet(at, 5000)(whole(at))),
    shape("the clock is set back by a minute", (at) => clockSet(at, -60_000)(whole(at))),
    shape(
      "pictures of another size, sound of another rate",
      (at) => followedBy(whole(at), at, encoded(other, AFTER_MS)),
    ),
    shape("silence, then another encoder", (at) => {
      const [backMs, cutMs] = [at + SILENT_MS, at + SILENT_MS + BETWEEN_MS];
      const changed = clockSet(0, -3_600_000)(elsewhere(encoded(other, AFTER_MS)));
      return followedBy(hole(at, backMs)(clipFor(cutMs)), cutMs, changed);
    }),
  ];
}
