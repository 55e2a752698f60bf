/** Reads files of the project, for scripts. Works on Deno, Node and Bun alike. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** The project's directory. */
export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** A source file; `path` is relative to the project, with `/`. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** Paths below `folder` that `wanted` accepts, sorted, relative to `root`. */
function listFiles(folder: string, wanted: (path: string) => boolean, root = ROOT): string[] {
  return readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)).replaceAll("\\", "/"))
    .filter((file) => !file.includes("node_modules/") && wanted(file))
    .sort();
}

/** TypeScript files below `folder`. */
export function readSources(folder: string, root = ROOT): SourceFile[] {
  return listFiles(folder, (file) => /\.tsx?$/.test(file) && !file.endsWith(".d.ts"), root)
    .map((file) => ({ path: file, text: readFileSync(path.join(root, file), "utf8") }));
}

/** The project's pages: every `README.md`. */
export function readPages(root = ROOT): SourceFile[] {
  const inside = ["src", "platform", "scripts", "test", "findings"].flatMap((folder) =>
    listFiles(folder, (file) => path.basename(file) === "README.md", root)
  );
  return ["README.md", ...inside].map((file) => ({ path: file, text: readFileSync(path.join(root, file), "utf8") }));
}

/** Suites that need programs other than the runtime (peers, players, a browser): they run only when they are named. */
const EXTERNAL = ["test/interop/", "test/browser/"];

/**
 * Test files that need only the runtime; with `filters`, those whose path contains one of them. A filter that begins with
 * the folder of another suite (`test/interop`, `test/browser`) takes the files from there.
 */
export function testFiles(filters: readonly string[] = []): string[] {
  const isNamed = (folder: string) => filters.some((filter) => `${filter}/`.startsWith(folder));
  const closed = EXTERNAL.filter((folder) => !isNamed(folder));
  return listFiles("test", (file) => file.endsWith("_test.ts"))
    .filter((file) => !closed.some((folder) => file.startsWith(folder)))
    .filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)));
}
