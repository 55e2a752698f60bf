import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import {
  bytesOf,
  clockEvery,
  clockSet,
  encoded,
  MAP_PID,
  maps,
  mapSection,
  pictures,
  programs,
  type SentPacket,
  slides,
  SOUND_PID,
  then,
  unflagged,
  VIDEO_PID,
  without,
} from "../support/ts-shapes.ts";
import { unitsOf, view } from "./live-shapes.ts";

const TV = encoded("ts-188.ts", 24_000);
const HEVC = encoded("ts-hevc.ts", 12_000);
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
    sent: unflagged(then(TV, 12_000, HEVC)),
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
