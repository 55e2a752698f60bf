/**
 * Films of 4 s in a few kilobytes, for the warm-up: a picture of 32 × 32 and a tone, H.264 and AAC. The build replaces
 * this module by one with their bytes. Made by:
 *
 *     ffmpeg -f lavfi -i testsrc2=size=32x32:rate=25 -f lavfi -i sine=frequency=440:sample_rate=24000 -t 4 \
 *       -c:v libx264 -preset veryslow -crf 40 -g 50 -pix_fmt yuv420p -bsf:v filter_units=remove_types=6 \
 *       -c:a aac -ac 1 -b:a 8k -fflags +bitexact short.mp4
 *     ffmpeg -i short.mp4 -c copy -fflags +bitexact short.mkv
 */
import { readFile } from "node:fs/promises";

/** The film as MP4 with its index at the end. */
export function loadMp4(): Promise<Uint8Array> {
  return load("./short.mp4");
}

/** The film as Matroska with its index at the end. */
export function loadMatroska(): Promise<Uint8Array> {
  return load("./short.mkv");
}

async function load(name: string): Promise<Uint8Array> {
  return new Uint8Array(await readFile(new URL(name, import.meta.url)));
}
