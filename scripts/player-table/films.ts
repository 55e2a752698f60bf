/** Films of pairwise codecs, a few seconds each. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../../test/support/process.ts";

/** Codecs of a film's pictures, sound and texts, and its container. */
export type Row = readonly [picture: string, sound: string, text: string, container: string];

/** Every pair of pictures and sound, of sound and texts, and of pictures and texts that exists. */
export const ROWS: readonly Row[] = [
  ["h264", "aac", "srt", "mkv"],
  ["h264", "aac", "tx3g", "mp4"],
  ["h264", "ac3", "ass", "mkv"],
  ["h264", "ac3", "tx3g", "mp4"],
  ["h264", "opus", "srt", "mkv"],
  ["h264", "flac", "ass", "mkv"],
  ["h264", "dts", "pgs", "mkv"],
  ["h264", "aac", "none", "mkv"],
  ["hevc", "aac", "ass", "mkv"],
  ["hevc", "aac", "tx3g", "mp4"],
  ["hevc", "ac3", "srt", "mkv"],
  ["hevc", "ac3", "pgs", "mkv"],
  ["hevc", "opus", "ass", "mkv"],
  ["hevc", "flac", "none", "mkv"],
  ["hevc", "dts", "srt", "mkv"],
  ["av1", "aac", "tx3g", "mp4"],
  ["av1", "ac3", "none", "mkv"],
  ["av1", "opus", "srt", "mkv"],
  ["av1", "opus", "pgs", "mkv"],
  ["av1", "flac", "srt", "mkv"],
  ["av1", "dts", "ass", "mkv"],
  ["vp9", "aac", "pgs", "mkv"],
  ["vp9", "ac3", "srt", "mkv"],
  ["vp9", "opus", "none", "webm"],
  ["vp9", "flac", "pgs", "mkv"],
  ["vp9", "dts", "none", "mkv"],
];

/** Length of a film, s. */
export const FILM_S = 6;
/** When its text is shown, s, and the text. */
export const SHOWN_S = [1, 4] as const;
export const TEXT = "Ahoy";

const CODERS: Readonly<Record<string, readonly string[]>> = {
  h264: ["-c:v", "libx264", "-preset", "ultrafast", "-g", "50"],
  hevc: ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:keyint=50"],
  av1: ["-c:v", "libaom-av1", "-usage", "realtime", "-cpu-used", "8", "-g", "50"],
  vp9: ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-g", "50"],
  aac: ["-c:a", "aac"],
  ac3: ["-c:a", "ac3"],
  opus: ["-c:a", "libopus"],
  flac: ["-c:a", "flac", "-strict", "-2"],
  dts: ["-c:a", "dca", "-strict", "-2"],
  srt: ["-c:s", "srt"],
  ass: ["-c:s", "ass"],
  tx3g: ["-c:s", "mov_text"],
  pgs: ["-c:s", "copy"],
  none: [],
};

/** The name of a film. */
export const nameOf = ([picture, sound, text, container]: Row) => `${picture}-${sound}-${text}.${container}`;

/** Makes the film in `folder`; its bytes. */
export async function makeFilm(row: Row, folder: string): Promise<Uint8Array> {
  const [picture, sound, text] = row;
  const path = join(folder, nameOf(row));
  const graphs = [`testsrc2=s=320x180:r=25:d=${FILM_S}`, `sine=440:r=48000:d=${FILM_S}`];
  const inputs = graphs.flatMap((graph) => ["-f", "lavfi", "-i", graph]);
  if (text !== "none") {
    const from = join(folder, text === "pgs" ? "text.sup" : "text.srt");
    if (text === "pgs") await writeFile(from, discSubtitle());
    else await writeFile(from, `1\n00:00:0${SHOWN_S[0]},000 --> 00:00:0${SHOWN_S[1]},000\n${TEXT}\n`);
    inputs.push("-i", from);
  }
  const maps = Array.from({ length: text === "none" ? 2 : 3 }, (_, n) => ["-map", String(n)]).flat();
  const coders = [picture, sound, text].flatMap((codec) => CODERS[codec]!);
  const tags = ["-metadata:s:a:0", "language=eng", "-metadata:s:s:0", "language=eng"];
  const all = [...inputs, ...maps, "-ac", "2", "-pix_fmt", "yuv420p", ...coders, ...tags, path];
  const { code, stderr } = await run("ffmpeg", ["-y", "-nostdin", "-v", "error", ...all], { timeoutMs: 300_000 });
  if (code !== 0) throw new Error(`ffmpeg cannot make ${nameOf(row)}: ${stderr}`);
  return new Uint8Array(await readFile(path));
}

/** A presentation graphic of discs: a white bar of 64 × 8 in a picture of 320 × 180, shown and taken away. */
function discSubtitle(): Uint8Array {
  const parts: number[] = [];
  const u16 = (value: number) => [value >> 8, value & 255];
  const u32 = (value: number) => [...u16(value >>> 16), ...u16(value & 0xffff)];
  const segment = (seconds: number, type: number, body: readonly number[]) =>
    parts.push(0x50, 0x47, ...u32(seconds * 90_000), ...u32(0), type, ...u16(body.length), ...body);
  const composition = (number: number, objects: readonly number[], isNew: boolean) => [
    ...[...u16(320), ...u16(180), 0x10, ...u16(number), isNew ? 0x80 : 0, 0, 0],
    ...[objects.length > 0 ? 1 : 0, ...objects],
  ];
  const line = [0, 0xc0, 64, 1, 0, 0];
  const picture = Array.from({ length: 8 }, () => line).flat();
  const [from, to] = SHOWN_S;
  const window = [1, 0, ...u16(128), ...u16(160), ...u16(64), ...u16(8)];
  segment(from, 0x16, composition(0, [...u16(0), 0, 0, ...u16(128), ...u16(160)], true));
  segment(from, 0x17, window);
  segment(from, 0x14, [0, 0, 1, 235, 128, 128, 255]);
  segment(from, 0x15, [...u16(0), 0, 0xc0, 0, ...u16(picture.length + 4), ...u16(64), ...u16(8), ...picture]);
  segment(from, 0x80, []);
  segment(to, 0x16, composition(1, [], false));
  segment(to, 0x17, window);
  segment(to, 0x80, []);
  return Uint8Array.from(parts);
}
