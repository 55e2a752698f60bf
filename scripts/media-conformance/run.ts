/**
 * The conformance suite of the media layer: makes files with the muxers that Debian has (ffmpeg, mkvtoolnix, GStreamer;
 * Bento4 and GPAC are in neither Debian nor npm), plays each through a swarm of two engines as MPEG TS, HLS and byte ranges in random order, and prints
 * in which ways they differ from their sources: packets by stream, timestamps, offset of sound and pictures, decoded
 * pictures, clock and continuity, EXTINF, segments joined, size. `run.ts [part of a name…]`; ends with 1 where a
 * deviation is not one that the format forces.
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { compare, type Deviation } from "./compare.ts";
import { make } from "./make.ts";
import { MATRIX_RECIPES } from "./matrix.ts";
import { mux } from "./mux.ts";
import { type Recipe, SINGLE_RECIPES } from "./recipes.ts";
import { SwarmPlayer } from "./swarm-player.ts";

/** All files of the suite. */
export const RECIPES: readonly Recipe[] = [...SINGLE_RECIPES, ...MATRIX_RECIPES];

/** What became of one recipe. */
export interface Outcome {
  readonly deviations: readonly Deviation[];
  readonly ratio: number;
}

/** Makes, plays and compares one file in `folder`, which `player` seeds. */
export async function check(recipe: Recipe, folder: string, player: SwarmPlayer): Promise<Outcome> {
  const file = make(recipe, folder);
  const sourceBytes = statSync(file).size;
  const reference = recipe.reference === undefined ? file : path.join(path.dirname(file), recipe.reference);
  const [played, muxed] = await Promise.all([player.play(file), mux(file)]);
  const { deviations, tsBytes } = compare({ file: reference, sourceBytes, played, muxed, scratch: `${file}.ts` });
  return {
    deviations: deviations.filter(({ kind }) => recipe.forced?.[kind] === undefined),
    ratio: tsBytes / sourceBytes,
  };
}

async function main(wanted: readonly string[]): Promise<number> {
  const folder = mkdtempSync(path.join(tmpdir(), "millrace-conformance-"));
  const player = await SwarmPlayer.start(folder);
  let faults = 0;
  try {
    for (
      const recipe of RECIPES.filter(({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)))
    ) {
      try {
        const { deviations, ratio } = await check(recipe, folder, player);
        const found = deviations.map(({ kind, text }) => `${kind}: ${text}`);
        faults += found.length;
        console.log(`${recipe.name.padEnd(36)} ${ratio.toFixed(2).padStart(5)}  ${found.join("; ") || "–"}`);
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
