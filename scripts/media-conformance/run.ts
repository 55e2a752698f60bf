/**
 * The conformance suite of the media layer: makes files with many muxers, plays each through a swarm of two engines as
 * MPEG TS, HLS and byte ranges in random order, and prints bit rate, size of the TS relative to the source, and in which
 * ways it differs: packets by stream, timestamps, offset of sound and pictures, decoded pictures, clock and continuity,
 * EXTINF, segments joined, size. `run.ts [part of a name…]`; ends with 1 where a deviation is not one that the format forces.
 *
 * Needs ffmpeg, mkvtoolnix, handbrake-cli, x264, x265 and GStreamer with its good, bad, ugly and libav plugins from Debian,
 * and `packager` on the PATH: the program inside npm's shaka-packager. Bento4 and GPAC are in neither Debian nor npm: files
 * of their structure are written by `fragmenter.ts`.
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { CAMERA_RECIPES } from "./camera-recipes.ts";
import { compare, type Comparison, type Deviation } from "./compare.ts";
import { FRAGMENT_RECIPES } from "./fragment-recipes.ts";
import { make } from "./make.ts";
import { MATRIX_RECIPES } from "./matrix.ts";
import { mux } from "./mux.ts";
import { type Recipe, SINGLE_RECIPES } from "./recipes.ts";
import { TOOL_RECIPES } from "./tool-recipes.ts";
import { STREAM_RECIPES } from "./stream-recipes.ts";
import { SwarmPlayer } from "./swarm-player.ts";

/** All files of the suite. */
export const RECIPES: readonly Recipe[] = [
  ...SINGLE_RECIPES,
  ...FRAGMENT_RECIPES,
  ...TOOL_RECIPES,
  ...CAMERA_RECIPES,
  ...STREAM_RECIPES,
  ...MATRIX_RECIPES,
];

/** Makes, plays and compares one file in `folder`, which `player` seeds. */
export async function check(recipe: Recipe, folder: string, player: SwarmPlayer): Promise<Comparison> {
  const file = await make(recipe, folder);
  const sourceBytes = statSync(file).size;
  const reference = recipe.reference === undefined ? file : path.join(path.dirname(file), recipe.reference);
  const asAac = recipe.asAac ?? false;
  const [played, muxed] = await Promise.all([player.play(file, asAac), mux(file, asAac)]);
  return compare({ file: reference, sourceBytes, played, muxed, asAac, scratch: `${file}.ts` });
}

/** Deviations that the format of `recipe` does not force. */
export function unforced({ forced }: Recipe, deviations: readonly Deviation[]): Deviation[] {
  return deviations.filter(({ kind }) => forced?.[kind] === undefined);
}

/** Deviations as one text. */
const listed = (deviations: readonly Deviation[]) => deviations.map(({ kind, text }) => `${kind}: ${text}`).join("; ");

async function main(wanted: readonly string[]): Promise<number> {
  const folder = mkdtempSync(path.join(tmpdir(), "millrace-conformance-"));
  const player = await SwarmPlayer.start(folder);
  let faults = 0;
  try {
    for (
      const recipe of RECIPES.filter(({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)))
    ) {
      try {
        const { deviations, ratio, bitsPerSecond } = await check(recipe, folder, player);
        const found = unforced(recipe, deviations);
        faults += found.length;
        const forced = listed(deviations.filter((one) => !found.includes(one)));
        const figures = `${Math.round(bitsPerSecond / 1000)}k ${ratio.toFixed(2)}`.padStart(12);
        console.log(
          `${recipe.name.padEnd(36)} ${figures}  ${listed(found) || "–"}${forced && `  [forced: ${forced}]`}`,
        );
      } catch (error) {
        faults++;
        console.log(`${recipe.name.padEnd(36)}        failed: ${error instanceof Error ? error.message : error}`);
      }
    }
  } finally {
    await player.close();
    rmSync(folder, { recursive: true, force: true });
  }
  return faults === 0 ? 0 : 1;
}

if (process.argv[1]?.endsWith("media-conformance/run.ts")) process.exit(await main(process.argv.slice(2)));
