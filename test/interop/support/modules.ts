/** Packages from npm that tests run beside themselves, since their like does not belong among our dependencies. */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { build, stop } from "esbuild";

/** Where castv2 and bonjour-service are installed: beside programs on the PATH. */
export function modules(): string {
  const folders = (process.env["PATH"] ?? "").split(delimiter).map((entry) => dirname(entry));
  const found = folders.find((entry) => ["castv2", "bonjour-service"].every((name) => existsSync(join(entry, name))));
  if (found === undefined) throw new Error("castv2 and bonjour-service are not installed beside programs on the PATH");
  return found;
}

/** Imports the ES module `file` of a package that is installed there. */
export async function importModule(name: string, file: string): Promise<Record<string, unknown>> {
  return await import(pathToFileURL(join(packageFolder(name), file)).href);
}

/** The same for a package with dependencies, which Deno would look for among ours: in one module with them. */
export async function importBundled(name: string, file: string): Promise<Record<string, unknown>> {
  const entryPoints = [join(packageFolder(name), file)];
  const { outputFiles: [module] } = await build({
    ...{ entryPoints, bundle: true, write: false as const },
    ...{ format: "esm" as const, platform: "node" as const },
  });
  await stop();
  return await import(`data:text/javascript;base64,${module!.contents.toBase64()}`);
}

/** The same for a package in CommonJS, whose main module it is. */
export function requireModule(name: string): Record<string, unknown> {
  return createRequire(import.meta.url)(packageFolder(name));
}

/** The folder of a package that is installed there. */
export function packageFolder(name: string): string {
  const folders = (process.env["PATH"] ?? "").split(delimiter).map((entry) => dirname(entry));
  const found = folders.find((entry) => existsSync(join(entry, name)));
  if (found === undefined) throw new Error(`${name} is not installed beside programs on the PATH`);
  return join(found, name);
}
