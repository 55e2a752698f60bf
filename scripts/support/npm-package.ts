/** Packages of npm as files, without an installation: what a release takes from them. */
import { renameSync, rmSync } from "node:fs";
import path from "node:path";
import { outputOf } from "./runtimes.ts";

/** Unpacks `name`, such as `bun@1.4.5`, into a new folder in `directory`; returns its path. */
export function fetchPackage(name: string, directory: string): string {
  const tarball = outputOf(directory, "npm", "pack", "--silent", name).trim().split("\n").at(-1)!;
  outputOf(directory, "tar", "-xzf", tarball);
  rmSync(path.join(directory, tarball));
  const to = path.join(directory, `npm-${name.replaceAll(/[^a-z0-9.-]/g, "-")}`);
  renameSync(path.join(directory, "package"), to);
  return to;
}
