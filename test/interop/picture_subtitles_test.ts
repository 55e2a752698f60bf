/** Programs that we didn't write find PGS and DVB subtitles of a Matroska film in its MPEG TS, and show the same. */
import { readFile, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { temporaryDirectory } from "../support/engine.ts";
import { MemorySource } from "../support/memory-source.ts";
import { run } from "../support/process.ts";
import { collect, NEVER, openBytes } from "../media/support/files.ts";
import { cluster, element, matroska, simpleBlock } from "../media/mkv-support.ts";
import {
  discNothing,
  discPicture,
  DVB_PRIVATE,
  dvbBox,
  subtitleEntry,
  supFile,
} from "../media/support/picture-subtitles.ts";

const SCREEN = [320, 180] as const;
/** When a picture is shown, and when it is taken away, ms. */
const SHOWN = [[700, 1900], [2500, 4100], [5200, 7000]] as const;

let home: { path: string; remove(): Promise<void> };
const at = (name: string) => `${home.path}/${name}`;

async function ran(command: string, ...args: string[]): Promise<string> {
  const { code, text } = await run(command, args, { timeoutMs: 60_000 });
  assertEquals(code, 0, text.slice(-2000));
  return text;
}

before(async () => {
  home = await temporaryDirectory();
  const sets = SHOWN.flatMap(([from, to], n) => {
    const colour = (x: number, y: number) => 1 + ((x >> (n + 1)) + (y >> 2)) % 2;
    const picture = discPicture({ number: 2 * n, width: 200, height: 24 + 8 * n, screen: SCREEN, colour });
    return [[from, picture], [to, discNothing(2 * n + 1, SCREEN)]] as const;
  });
  await writeFile(at("text.sup"), supFile(sets));
  // ffmpeg makes DVB subtitles of no PGS: their times are lost.
  const boxes = SHOWN.flatMap(([from, to], n) =>
    [[from, dvbBox(2 * n, 120, 16)], [to, dvbBox(2 * n + 1, 0, 0)]] as const
  );
  const dvb = subtitleEntry(1, "S_DVBSUB", { language: "fre", more: [element(0x63a2, DVB_PRIVATE)] });
  const blocks = boxes.map(([ms, set]) => simpleBlock(1, ms, 0x80, set));
  await writeFile(at("dvb.mkv"), matroska([cluster(0, blocks)], { tracks: [dvb], durationMs: 8000 }));
  const graphs = ["testsrc2=s=320x180:r=10:d=8", "sine=440:r=48000:d=8"];
  const inputs = [
    ...graphs.flatMap((graph) => ["-f", "lavfi", "-i", graph]),
    ...["text.sup", "dvb.mkv"].flatMap((name) => ["-i", at(name)]),
  ];
  const coders = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "20", "-pix_fmt", "yuv420p", "-c:a", "aac"];
  const maps = ["-map", "0", "-map", "1", "-map", "2", "-map", "3", "-c:s", "copy"];
  const tags = [
    "-metadata:s:s:0",
    "language=ger",
    "-metadata:s:s:1",
    "language=fre",
    "-disposition:s:1",
    "hearing_impaired",
  ];
  await ran("ffmpeg", "-nostdin", "-v", "error", ...inputs, ...maps, ...coders, ...tags, at("ffmpeg.mkv"));
  // It packs PGS by zlib.
  const marks = ["--language", "2:ger", "--hearing-impaired-flag", "2:1", "--language", "3:fre"];
  await ran("mkvmerge", "-q", "-o", at("mkvmerge.mkv"), ...marks, at("ffmpeg.mkv"));
  for (const name of ["ffmpeg", "mkvmerge"]) {
    const bytes = new Uint8Array(await readFile(at(`${name}.mkv`)));
    const { ts, faults } = await openBytes(bytes);
    const whole = await collect(ts.read(0, null, new MemorySource(bytes), NEVER));
    assertEquals([whole.length, faults.counts.dropped], [ts.sizeBytes, 0]);
    await writeFile(at(`${name}.ts`), whole);
  }
});
after(() => home?.remove());

interface Stream {
  readonly codec_name: string;
  readonly tags?: { readonly language?: string };
  readonly disposition: { readonly hearing_impaired: number };
}

async function subtitles(path: string): Promise<Stream[]> {
  const shown = "stream=codec_name:stream_tags=language:stream_disposition=hearing_impaired";
  const args = ["-v", "error", "-select_streams", "s", "-show_entries", shown, "-of", "json", path];
  return JSON.parse(await ran("ffprobe", ...args)).streams;
}

/** Times, s, sizes and hashes of the packets of subtitle stream `n`. */
async function packets(path: string, n: number): Promise<{ pts: number; size: number; hash: string }[]> {
  const show = ["-show_entries", "packet=pts_time,size,data_hash", "-show_data_hash", "md5", "-of", "json"];
  const text = await ran("ffprobe", "-v", "error", "-select_streams", `s:${n}`, ...show, path);
  return JSON.parse(text).packets.map((one: { pts_time: string; size: string; data_hash: string }) => ({
    pts: Number(one.pts_time),
    size: Number(one.size),
    hash: one.data_hash,
  }));
}

/** Hashes of the pictures with subtitle stream `n` over them. */
async function shownFrames(path: string, n: number): Promise<string[]> {
  const graph = ["-filter_complex", `[0:v][0:s:${n}]overlay=eof_action=pass`, "-an", "-f", "framemd5", "-"];
  const text = await ran("ffmpeg", "-nostdin", "-v", "error", "-i", path, ...graph);
  return text.split("\n").filter((line) => /^\d/.test(line)).map((line) => line.split(",").at(-1)!.trim());
}

for (const name of ["ffmpeg", "mkvmerge"]) {
  test(`ffmpeg finds the subtitles of a film of ${name} in its MPEG TS, and shows the same pictures`, async () => {
    const [film, ts] = [at(`${name}.mkv`), at(`${name}.ts`)];
    const isMerged = name === "mkvmerge";
    const told = (await subtitles(ts)).map(({ codec_name, tags, disposition }) => [
      codec_name,
      tags?.language,
      disposition.hearing_impaired,
    ]);
    assertEquals(told, [
      ["hdmv_pgs_subtitle", isMerged ? "deu" : "ger", isMerged ? 1 : 0],
      ["dvb_subtitle", isMerged ? "fra" : "fre", 1],
    ]);
    const shown: string[][] = [];
    for (const n of [0, 1]) {
      const [theirs, ours] = [await packets(film, n), await packets(ts, n)];
      assertEquals(ours.length, theirs.length);
      assertEquals(ours.map(({ size }) => size), theirs.map(({ size }) => size));
      if (n === 0) assertEquals(ours.map(({ hash }) => hash), theirs.map(({ hash }) => hash));
      const offset = ours[0]!.pts - theirs[0]!.pts;
      for (const [i, { pts }] of ours.entries()) assertLess(Math.abs(pts - theirs[i]!.pts - offset), 0.001);
      shown.push(await shownFrames(ts, n));
      assertEquals(shown[n], await shownFrames(film, n));
    }
    // The pictures under them are the same.
    assert(shown[0]!.some((hash, i) => hash !== shown[1]![i]));
  });
}

test("mpv lists both subtitles in MPEG TS, and decodes them", async () => {
  const args = ["--no-config", "--vo=null", "--ao=null", "--no-audio", "--untimed", "--length=3", "--sid=1"];
  const text = await ran("mpv", ...args, at("ffmpeg.ts"));
  assert(/Subs\s+--sid=1 --slang=ger \(hdmv_pgs_subtitle\)/.test(text), text);
  assert(/Subs\s+--sid=2 --slang=fre.*\(dvb_subtitle\)/.test(text), text);
  assert(!/error|invalid|corrupt/i.test(text), text);
});
