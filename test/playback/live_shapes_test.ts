/** What shapes of sources may cost a viewer. The table stands in `test/README.md`, too: change both. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import {
  all,
  bytesOf,
  clockEvery,
  clockOn,
  clockSet,
  each,
  encoded,
  followedBy,
  hole,
  inserted,
  losing,
  MAP_PID,
  maps,
  mapSection,
  moved,
  paused,
  pictures,
  privatePacket,
  programs,
  repeated,
  restarted,
  type SentPacket,
  slides,
  SOUND_PID,
  tablesEvery,
  unflagged,
  unknownPacket,
  VIDEO_PID,
  without,
  wrapsAt,
} from "../support/ts-shapes.ts";
import { PACKET_BYTES, payloadOf, pidOf, startsUnit } from "../../src/bytes/ts/packet.ts";
import { sectionPackets } from "../../src/bytes/ts/psi.ts";
import { unitsOf, view } from "./live-shapes.ts";

const TV = encoded("ts-188.ts", 24_000);
/** The same, shorter. */
const CLIP = encoded("ts-188.ts", 16_000);
const HEVC = encoded("ts-hevc.ts", 12_000);
const MPEG2 = encoded("ts-mpeg2.ts", 12_000);
/** Its sound is on the PID of the others' video. */
const RADIO = encoded("ts-audio-only.ts", 24_000);

/** The map of `TV`. */
const STREAMS = [[0x1b, VIDEO_PID], [0x0f, SOUND_PID]] as const;

/** What the viewer may get differently from a plain stream. */
interface Shape {
  readonly name: string;
  readonly sent: readonly SentPacket[];
  /** The source is lost this often. Default 0. */
  readonly lost?: number;
  /** Discontinuities in HLS. Default: `lost`. */
  readonly cuts?: number;
  /** When HLS begins at the latest, and MPEG TS within 5 s, ms: the bitrate is measured for 3 s. Default 3500. */
  readonly startMs?: number;
  /** Longest time without any MPEG TS, ms. Default 1500. */
  readonly pauseMs?: number;
  /** Units that may be missing, of video and sound. Default 2 and 1. */
  readonly missing?: readonly [video: number, sound: number];
}

const SHAPES: readonly Shape[] = [
  { name: "a picture and sound", sent: TV },
  { name: "sound alone", sent: RADIO },
  {
    name: "a map that names video of which nothing comes",
    sent: without(VIDEO_PID)(TV),
    startMs: 5000,
    missing: [0, 9],
  },
  { name: "video that stops for 8 s", sent: without(VIDEO_PID, 10_000, 18_000)(TV), pauseMs: 3500 },
  {
    name: "data that never comes, named before the sound",
    sent: maps([mapSection([[0x06, 0x150], [0x0f, VIDEO_PID]])])(RADIO),
  },
  { name: "SCTE-35 named before the sound", sent: maps([mapSection([[0x86, 0x150], [0x0f, VIDEO_PID]])])(RADIO) },
  {
    name: "maps of two programs on one PID, one of them not named",
    sent: maps([mapSection(STREAMS), mapSection([[0x1b, 0x200], [0x0f, 0x201]], { number: 2 })])(TV),
  },
  {
    name: "maps of two programs on one PID, both named",
    sent: programs([1, MAP_PID], [2, MAP_PID])(
      maps([mapSection([[0x1b, 0x200], [0x0f, 0x201]], { number: 2 }), mapSection(STREAMS)])(TV),
    ),
  },
  {
    name: "a first program of which no map comes",
    sent: programs([9, 0x1fe0], [1, MAP_PID])(TV),
  },
  {
    name: "a map announced for later",
    sent: maps([mapSection(STREAMS), mapSection([[0x1b, 0x200], [0x0f, 0x201]], { version: 1, isNext: true })])(TV),
  },
  {
    name: "H.264, then HEVC on its PID, unflagged",
    sent: unflagged(followedBy(TV, 12_000, HEVC)),
    cuts: 1,
    missing: [30, 3],
  },
  { name: "a clock that comes every 4 s", sent: clockEvery(4000)(TV) },
  { name: "slides 5 s apart", sent: slides(5000)(TV), startMs: 4500 },
  { name: "slides 12 s apart", sent: slides(12_000)(TV), lost: 1, startMs: 4500, missing: [1, 5] },
  { name: "no key frame after the first", sent: pictures((atMs, isKey) => !isKey || atMs < 900)(TV), startMs: 10_500 },
  {
    name: "key frames 1 s apart, later 9",
    sent: pictures((atMs, isKey) => !isKey || atMs < 5000 || Math.floor(atMs / 1000) % 9 === 0)(TV),
  },
  { name: "a clock set ahead by 5 s", sent: clockSet(12_000, 5000)(TV), lost: 1, missing: [26, 3] },
  { name: "a clock set ahead by an hour", sent: clockSet(8000, 3_600_000)(CLIP), lost: 1, missing: [26, 3] },
  { name: "a clock set back by a minute", sent: clockSet(8000, -60_000)(CLIP), lost: 1, missing: [26, 3] },
  { name: "a clock set ahead by 1.5 s", sent: clockSet(8000, 1500)(CLIP) },
  { name: "a clock that passes 2^33", sent: wrapsAt(8000)(CLIP) },
  { name: "a clock that comes once", sent: clockEvery(1e8)(CLIP) },
  {
    name: "a clock on a PID of its own",
    sent: all(clockOn(0x1ff), maps([mapSection(STREAMS, { pcrPid: 0x1ff })]))(CLIP),
  },
  { name: "a clock on a PID that never comes", sent: maps([mapSection(STREAMS, { pcrPid: 0x1fe })])(CLIP) },
  { name: "a hole of 1.5 s", sent: hole(8000, 9500)(CLIP), pauseMs: 3000, missing: [26, 3] },
  { name: "a hole of 4 s", sent: hole(8000, 12_000)(CLIP), lost: 1, pauseMs: 5500, missing: [26, 3] },
  { name: "a sender that pauses for 4 s", sent: paused(8000, 4000)(CLIP), pauseMs: 5000 },
  {
    name: "an encoder that begins again",
    sent: restarted(8000)(CLIP.filter(({ atMs }) => atMs < 12_000)),
    lost: 1,
    missing: [52, 6],
  },
  { name: "one packet in a hundred lost", sent: losing((_, i) => i % 100 === 50)(CLIP), missing: [2, 2] },
  { name: "one packet in a hundred twice", sent: repeated((i) => i % 100 === 50)(CLIP), missing: [30, 10] },
  { name: "stuffing", sent: inserted(5, () => unknownPacket(0x1fff))(CLIP) },
  { name: "a PID that no map names", sent: inserted(20, () => unknownPacket(0x1ff))(CLIP) },
  {
    name: "pictures that are scrambled for 1.5 s",
    sent: each(VIDEO_PID, (bytes, atMs) => {
      if (atMs >= 8000 && atMs < 9500) bytes[3] = bytes[3]! | 0x80;
    })(CLIP),
    pauseMs: 3500,
    missing: [80, 3],
  },
  {
    name: "packets marked as damaged",
    sent: each(VIDEO_PID, (bytes, atMs) => {
      if (atMs >= 8000 && atMs < 8500) bytes[1] = bytes[1]! | 0x80;
    })(CLIP),
    missing: [26, 3],
  },
  { name: "no flags for random access", sent: unflagged(CLIP) },
  { name: "tables every 3 s", sent: tablesEvery(3000)(CLIP), startMs: 3600 },
  { name: "tables once", sent: tablesEvery(1e6)(CLIP) },
  {
    name: "pictures on another PID from the middle on",
    sent: all(
      moved(VIDEO_PID, 0x110, 8000),
      maps([mapSection([[0x1b, 0x110], STREAMS[1]], { pcrPid: 0x110, version: 1 })], 8000),
    )(CLIP),
    cuts: 1,
    missing: [26, 3],
  },
  {
    name: "another program number from the middle on",
    sent: followedBy(
      CLIP,
      8000,
      all(
        programs([7, MAP_PID]),
        maps([mapSection(STREAMS, { number: 7 })]),
      )(CLIP.filter(({ atMs }) => atMs < 8000)),
    ),
    cuts: 1,
    missing: [26, 3],
  },
  { name: "sound that begins after 7 s", sent: without(SOUND_PID, 0, 7000)(CLIP), cuts: 1 },
  { name: "sound that stops for 5 s", sent: without(SOUND_PID, 7000, 12_000)(CLIP) },
  { name: "a second sound that never comes", sent: maps([mapSection([...STREAMS, [0x0f, 0x102]])])(CLIP) },
  {
    name: "teletext",
    sent: all(
      maps([mapSection([...STREAMS, [0x06, 0x150, 0x56, 5, 0x65, 0x6e, 0x67, 9, 0]])]),
      inserted(40, (atMs, n) => privatePacket(0x150, 126_000 + 90 * atMs, n)),
    )(CLIP),
  },
  { name: "HEVC", sent: HEVC },
  { name: "MPEG-2", sent: MPEG2 },
  {
    name: "MPEG-2, then H.264 on its PID",
    sent: followedBy(MPEG2, 8000, CLIP.filter(({ atMs }) => atMs < 8000)),
    cuts: 1,
    missing: [52, 6],
  },
];

for (const { name, sent, lost = 0, cuts = lost, startMs = 3500, pauseMs = 1500, missing = [2, 1] } of SHAPES) {
  test(`a broadcast reaches viewers in MPEG TS and HLS when its source has ${name}`, async () => {
    const viewed = await view(sent);
    const expected = unitsOf(bytesOf(sent));
    assertEquals(viewed.lost.length, lost, viewed.lost.join());
    assert(
      viewed.tsStartMs <= Math.min(startMs, 5000) && viewed.hlsStartMs <= startMs,
      `${viewed.tsStartMs}, ${viewed.hlsStartMs} ms`,
    );
    assert(viewed.tsPauseMs <= pauseMs, `nothing came for ${viewed.tsPauseMs} ms`);
    for (const [output, units] of [["MPEG TS", viewed.tsUnits], ["HLS", viewed.hlsUnits]] as const) {
      for (const [i, pid] of [VIDEO_PID, SOUND_PID].entries()) {
        const [got, most] = [units[pid] ?? 0, expected[pid] ?? 0];
        assert(got <= most && got >= most - missing[i]!, `${output} has ${got} of ${most} units of ${pid}`);
      }
    }
    assertEquals(viewed.hlsCuts, cuts);
    assert(viewed.hlsLongestMs < viewed.targetDurationS * 1000 + 500, `${viewed.hlsLongestMs} ms`);
  });
}

/** Payloads of the packets of a PID that begin something. */
function beginningsOf(ts: Uint8Array, pid: number): Uint8Array[] {
  const found: Uint8Array[] = [];
  for (let at = 0; at < ts.length; at += PACKET_BYTES) {
    if (pidOf(ts, at) === pid && startsUnit(ts, at)) found.push(payloadOf(ts, at).slice());
  }
  return found;
}

test("teletext and SCTE-35 of a source come to viewers of MPEG TS byte for byte", async () => {
  const [teletext, cues] = [0x150, 0x151];
  // A splice_info_section of a length of its own, each with another time in it.
  const cue = (atMs: number, n: number) => {
    const section = new Uint8Array(40).fill(n & 0xff);
    section.set([0xfc, 0x30, 37, 0, 0, 0, 0, 0, 0, 0xff, 0xf0, 5, 6, 0xfe, ...[24, 16, 8, 0].map((by) => atMs >> by)]);
    const packet = sectionPackets(section, cues);
    packet[3] = 0x10 | (n & 15);
    return packet;
  };
  const sent = all(
    maps([mapSection([...STREAMS, [0x06, teletext, 0x56, 5, 0x65, 0x6e, 0x67, 9, 0], [0x86, cues]])]),
    inserted(40, (atMs, n) => privatePacket(teletext, 126_000 + 90 * atMs, n)),
    inserted(500, cue),
  )(CLIP);
  const { ts } = await view(sent);
  for (const pid of [teletext, cues]) {
    const all = beginningsOf(bytesOf(sent), pid);
    const got = beginningsOf(ts, pid);
    // Output begins with a random access point of the picture.
    assert(got.length > all.length * 0.8, `${got.length} of ${all.length}`);
    assertEquals(got, all.slice(all.length - got.length));
  }
});
