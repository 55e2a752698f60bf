/** How many more pieces a swarm has to bring for a viewer who turns subtitles on. */
import { readFile, writeFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { assertEquals, assertGreater, assertLessOrEqual } from "@std/assert";
import type { ByteSource, ReadOptions } from "../../src/bytes/source.ts";
import { NEVER, openBytes } from "../media/support/files.ts";
import { temporaryDirectory } from "../support/engine.ts";
import { MemorySource } from "../support/memory-source.ts";
import { run } from "../support/process.ts";

/** The smallest pieces in use: what is read beside the pictures shows most with them. */
const PIECE_BYTES = 16_384;
const FILM_S = 60;
const LANGUAGES = ["eng", "ger", "fre"];

/** A file whose pieces count as downloaded once something of them was read. */
class Pieces implements ByteSource {
  readonly here = new Set<number>();
  readonly sizeBytes: number;
  readonly #all: MemorySource;

  constructor(bytes: Uint8Array) {
    this.sizeBytes = bytes.length;
    this.#all = new MemorySource(bytes);
  }

  read(offset: number, length: number, options: ReadOptions): Promise<Uint8Array> {
    for (let at = offset; at < offset + length; at = (Math.floor(at / PIECE_BYTES) + 1) * PIECE_BYTES) {
      this.here.add(Math.floor(at / PIECE_BYTES));
    }
    return this.#all.read(offset, length, options);
  }

  availableFrom(offset: number, maxBytes: number): number {
    let at = offset;
    while (at < offset + maxBytes && this.here.has(Math.floor(at / PIECE_BYTES))) {
      at = (Math.floor(at / PIECE_BYTES) + 1) * PIECE_BYTES;
    }
    return Math.min(at, offset + maxBytes) - offset;
  }
}

let home: Awaited<ReturnType<typeof temporaryDirectory>>;
before(async () => {
  home = await temporaryDirectory();
  const lines = Array.from({ length: FILM_S / 2 }, (_, n) => {
    const time = (s: number) => `00:00:${String(s).padStart(2, "0")},000`;
    return `${n + 1}\n${time(2 * n)} --> ${time(2 * n + 1)}\nline ${n}\n`;
  });
  await writeFile(`${home.path}/texts.srt`, lines.join("\n"));
  const pictures = ["-f", "lavfi", "-i", `testsrc2=s=320x180:r=25:d=${FILM_S},noise=alls=30:allf=t`];
  const sound = ["-f", "lavfi", "-i", `sine=d=${FILM_S}`];
  const coders = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "50", "-c:a", "aac"];
  await ffmpeg([...pictures, ...sound, ...coders, `${home.path}/film.mp4`]);
});
after(() => home?.remove());

async function ffmpeg(args: readonly string[]): Promise<void> {
  const { code, stderr } = await run("ffmpeg", ["-nostdin", "-v", "error", ...args]);
  assertEquals(code, 0, stderr);
}

/** The film with a text in each language, as ffmpeg makes it; the bytes of the file. */
async function muxed(name: string, ...more: readonly string[]): Promise<Uint8Array> {
  const inputs = ["film.mp4", ...LANGUAGES.map(() => "texts.srt")].flatMap((file) => ["-i", `${home.path}/${file}`]);
  const maps = Array.from({ length: 1 + LANGUAGES.length }, (_, n) => ["-map", String(n)]).flat();
  const tags = LANGUAGES.flatMap((language, n) => [`-metadata:s:s:${n}`, `language=${language}`]);
  await ffmpeg([...inputs, ...maps, "-c", "copy", ...tags, ...more, `${home.path}/${name}`]);
  return new Uint8Array(await readFile(`${home.path}/${name}`));
}

const FORMS: Readonly<Record<string, () => Promise<Uint8Array>>> = {
  "Matroska of ffmpeg": () => muxed("film.mkv"),
  "Matroska of mkvmerge": async () => {
    await muxed("source.mkv");
    const { code, text } = await run("mkvmerge", ["-q", "-o", `${home.path}/merged.mkv`, `${home.path}/source.mkv`]);
    assertEquals(code, 0, text);
    return new Uint8Array(await readFile(`${home.path}/merged.mkv`));
  },
  "MP4 of ffmpeg": () => muxed("texts.mp4", "-c:s", "mov_text"),
  "MP4 in fragments": () =>
    muxed("fragments.mp4", "-c:s", "mov_text", "-movflags", "frag_keyframe+empty_moov+default_base_moof+global_sidx"),
};

for (const [name, make] of Object.entries(FORMS)) {
  test(`SegmentTexts.read() costs at most two pieces in a hundred beside the pictures: ${name}`, async () => {
    const bytes = await make();
    const { hls } = await openBytes(bytes);
    const half = hls.segments.slice(0, Math.ceil(hls.segments.length / 2));
    const source = new Pieces(bytes);
    const found = new Set<string>();
    let without = 0;
    let more = 0;
    for (const { index } of half) {
      const before = source.here.size;
      for await (const _ of hls.readSegment(index, source, NEVER));
      const between = source.here.size;
      for (const { text } of await hls.texts!.read(1, index, source, NEVER)) found.add(text);
      without += between - before;
      more += source.here.size - between;
    }
    assertGreater(found.size, 10);
    assertGreater(without, 100);
    assertLessOrEqual(more, without * 0.02, `${more} of ${without}`);
  });
}
