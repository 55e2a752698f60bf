/**
 * Builds `dist/npm`, the folder that `npm pack` makes the package of: the command `millrace`, the library with its types,
 * and the ports of each runtime. It needs no other package. The native library of the database comes as optional packages,
 * one for each kind of machine, of which npm installs the one that fits.
 */
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { parseArgs } from "node:util";
import { build, type Plugin, stop } from "esbuild";
import { rollup } from "rollup";
import { dts } from "rollup-plugin-dts";
import { ModuleKind, ModuleResolutionKind, ScriptTarget } from "typescript";
import { VERSION } from "../src/version.ts";
import { embedFiles, RELEASE } from "./support/bundle.ts";
import { ROOT } from "./support/files.ts";
import { licencesOf } from "./support/licences.ts";
import { manPage } from "./support/manual.ts";

/** `--into DIR`: another place for the folder. */
const { values: { into } } = parseArgs({ options: { into: { type: "string" } } });
const DIST = into === undefined ? path.join(ROOT, "dist", "npm") : path.resolve(into);

const COMMAND = "millrace.js";

/** Modules that programs import, by the name of their file in the package. */
const MODULES = {
  mod: "src/mod.ts",
  deno: "platform/deno/ports.ts",
  node: "platform/node/ports.ts",
  bun: "platform/bun/ports.ts",
};

/** libSQL's own way to find its package for this machine, without the one for developers of libSQL. */
const nativePackages: Plugin = {
  name: "native-packages",
  setup(builder) {
    builder.onLoad({ filter: /[\\/]libsql[\\/](?:index|promise)\.js$/ }, ({ path: file }) => {
      const text = readFileSync(file, "utf8");
      const changed = text.replace(/if \(process\.env\.LIBSQL_JS_DEV\) \{[\s\S]*?\n {2}\}/, "");
      if (changed === text) throw new Error(`${file} now loads its native library in another way`);
      return { contents: changed, loader: "js" };
    });
  },
};

/** Bundles all scripts, with what they share in `chunks`; returns the files that went into them. */
async function bundleScripts(): Promise<string[]> {
  const { metafile } = await build({
    ...RELEASE,
    absWorkingDir: ROOT,
    entryPoints: { millrace: "platform/any/main.ts", ...MODULES },
    outdir: DIST,
    splitting: true,
    chunkNames: "chunks/[name]-[hash]",
    legalComments: "eof",
    metafile: true,
    plugins: [embedFiles, nativePackages],
  });
  await stop();
  const command = path.join(DIST, COMMAND);
  writeFileSync(command, `#!/usr/bin/env node\n${readFileSync(command, "utf8")}`);
  chmodSync(command, 0o755);
  return Object.keys(metafile.inputs);
}

/** The types of the modules, without those that nobody outside can name. */
async function bundleTypes(): Promise<void> {
  const types = await rollup({
    input: Object.fromEntries(Object.entries(MODULES).map(([name, file]) => [name, path.join(ROOT, file)])),
    external: /^[^./]/,
    plugins: [dts({
      compilerOptions: {
        allowImportingTsExtensions: true,
        module: ModuleKind.Preserve,
        moduleResolution: ModuleResolutionKind.Bundler,
        target: ScriptTarget.ESNext,
        strict: true,
        exactOptionalPropertyTypes: true,
        types: [],
      },
    })],
    onwarn: ({ message }) => {
      throw new Error(message);
    },
  });
  await types.write({ dir: DIST, entryFileNames: "[name].d.ts", chunkFileNames: "types/[name].d.ts" });
  await types.close();
}

/** The packages that hold libSQL's native library for each kind of machine, as libSQL names them. */
function nativeLibraries(): Record<string, string> {
  const fromClient = createRequire(createRequire(import.meta.url).resolve("@libsql/client"));
  const file = path.join(path.dirname(fromClient.resolve("libsql")), "package.json");
  return JSON.parse(readFileSync(file, "utf8")).optionalDependencies;
}

function manifest(): string {
  const ours = JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8"));
  if (ours.version !== VERSION) throw new Error(`package.json has version ${ours.version}, src/version.ts ${VERSION}`);
  const module = (name: string) => ({ types: `./${name}.d.ts`, default: `./${name}.js` });
  return JSON.stringify(
    {
      name: ours.name,
      version: VERSION,
      description: ours.description,
      license: ours.license,
      keywords: ["bittorrent", "torrent", "streaming", "hls", "mpeg-ts", "http"],
      type: "module",
      engines: { node: ">=20", bun: ours.engines.bun, deno: ">=2.9" },
      bin: { millrace: COMMAND },
      man: "./millrace.1",
      main: "./mod.js",
      types: "./mod.d.ts",
      exports: {
        ".": module("mod"),
        "./deno": module("deno"),
        "./node": module("node"),
        "./bun": module("bun"),
        "./package.json": "./package.json",
      },
      optionalDependencies: nativeLibraries(),
    },
    null,
    2,
  ) + "\n";
}

rmSync(DIST, { recursive: true, force: true });
mkdirSync(DIST, { recursive: true });
writeFileSync(path.join(DIST, "package.json"), manifest());
writeFileSync(path.join(DIST, "THIRD-PARTY.txt"), licencesOf(await bundleScripts()));
writeFileSync(path.join(DIST, "millrace.1"), manPage());
copyFileSync(path.join(ROOT, "LICENSE"), path.join(DIST, "LICENSE"));
copyFileSync(path.join(ROOT, "scripts/package/README.md"), path.join(DIST, "README.md"));
await bundleTypes();
console.log(`${path.relative(ROOT, DIST)}: npm pack ./${path.relative(ROOT, DIST)} makes millrace-${VERSION}.tgz`);
