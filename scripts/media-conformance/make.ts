/** Makes the files of recipes. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Recipe } from "./recipes.ts";

/** A command that takes longer hangs, ms. */
const COMMAND_TIMEOUT_MS = 60_000;

/** Runs the steps of `recipe` in a folder of its own inside `folder`; returns the path of the file. */
export async function make(recipe: Recipe, folder: string): Promise<string> {
  const cwd = path.join(folder, recipe.name.replace(".", "-"));
  mkdirSync(cwd, { recursive: true });
  for (const [program, ...words] of recipe.commands) {
    try {
      execFileSync(program!, words, { cwd, stdio: ["ignore", "pipe", "pipe"], timeout: COMMAND_TIMEOUT_MS });
    } catch (error) {
      // mkvmerge ends with 1 when it only warned.
      if (program !== "mkvmerge" || (error as { status?: number }).status !== 1) throw error;
    }
  }
  const file = path.join(cwd, recipe.name);
  await recipe.write?.(cwd, file);
  if (recipe.edit !== undefined) writeFileSync(file, recipe.edit(new Uint8Array(readFileSync(file))));
  return file;
}
