/**
 * Makes test/fixtures: `deno run -A scripts/fixtures.ts [name…]` (all, or the named clips; needs ffmpeg with libx264,
 * libx265, libvpx, libopus, libvorbis, libmp3lame). `--check` only compares the files with hashes.json. The same ffmpeg makes the
 * same bytes; another version may not, which is why the clips are committed.
 */
import process from "node:process";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { putBetweenTags, shortenNalLengths, widenPackets } from "./fixtures/derive.ts";
import { RECIPES } from "./fixtures/recipes.ts";
import { torrents } from "./fixtures/torrents.ts";

const folder = new URL("../test/fixtures/", import.meta.url);
const hashesFile = new URL("hashes.json", folder);
const path = (name: string) => new URL(name, folder).pathname;
const read = (name: string) => new Uint8Array(readFileSync(path(name)));

interface Entry {
  sha256: string;
  bytes: number;
  why: string;
}

function entry(data: Uint8Array, why: string): Entry {
  return { sha256: createHash("sha256").update(data).digest("hex"), bytes: data.length, why };
}

function check(): number {
  const hashes = JSON.parse(readFileSync(hashesFile, "utf8")) as Record<string, Entry>;
  let wrong = 0;
  for (const [name, expected] of Object.entries(hashes)) {
    if (existsSync(path(name)) && entry(read(name), "").sha256 === expected.sha256) continue;
    console.error(`${name}: missing or changed`);
    wrong++;
  }
  return wrong;
}

function make(only: readonly string[]): void {
  mkdirSync(folder, { recursive: true });
  const hashes: Record<string, Entry> = existsSync(hashesFile) ? JSON.parse(readFileSync(hashesFile, "utf8")) : {};
  const exact = ["-fflags", "+bitexact", "-flags:v", "+bitexact", "-flags:a", "+bitexact", "-map_metadata", "-1"];
  const save = (name: string, data: Uint8Array, why: string) => {
    writeFileSync(path(name), data);
    hashes[name] = entry(data, why);
    console.log(`${name}: ${data.length} bytes`);
  };
  for (const { name, why, args, pipe } of RECIPES) {
    if (only.length > 0 && !only.includes(name)) continue;
    const base = [
      "-nostdin",
      "-v",
      "error",
      "-y",
      ...args.map((a) => a.startsWith("@") ? path(a.slice(1)) : a),
      ...exact,
    ];
    const piped = execFileSync("ffmpeg", [...base, pipe === true ? "pipe:1" : path(name)], { maxBuffer: 1 << 26 });
    save(name, pipe === true ? new Uint8Array(piped) : read(name), why);
  }
  if (only.length === 0 || only.includes("audio-tagged.mp3")) {
    save("audio-tagged.mp3", putBetweenTags(read("audio-bare.mp3")), "tags before and after, from audio-bare.mp3");
  }
  if (only.length === 0) {
    save("ts-204.ts", widenPackets(read("ts-188.ts")), "204-byte packets, from ts-188.ts");
    save("mp4-nal2.mp4", shortenNalLengths(read("mp4-end.mp4")), "2-byte NAL lengths, from mp4-end.mp4");
    for (const [name, data] of torrents(read)) save(name, data, "transport file");
  }
  const sorted = Object.fromEntries(Object.entries(hashes).sort(([a], [b]) => a < b ? -1 : 1));
  writeFileSync(hashesFile, JSON.stringify(sorted, null, 2) + "\n");
}

if (process.argv.includes("--check")) process.exit(check() === 0 ? 0 : 1);
make(process.argv.slice(2));
