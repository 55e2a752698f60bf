/**
 * Builds `dist/millrace.mjs`, one file for Node 20 and later, Bun and Deno, and next to it `libsql.node`, libSQL's native
 * library for this machine. Runtimes that have no SQLite, as Node 20, load it at the first use of settings or playlists. `webrtc.mjs`
 * connects to web browsers; it is read when the first torrent names a tracker of theirs. Beside
 * it the licences of all that is bundled, the source map, and in `share` the manual page and the completions of shells.
 * Two builds of the same sources are the same. With `--binaries` also executables that contain their runtime, for several
 * systems: the runtimes come from npm.
 */
import { chmodSync, copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { build, type Plugin, stop } from "esbuild";
import { embedFiles, RELEASE, REQUIRE_BANNER } from "./support/bundle.ts";
import { buildExecutables } from "./support/executables.ts";
import { ROOT } from "./support/files.ts";
import { licencesOf } from "./support/licences.ts";
import { manualFiles } from "./support/manual.ts";
import { exit } from "./support/runtimes.ts";

/** `--into DIR`: another place for the files. */
const { values: { into, binaries: wantsBinaries } } = parseArgs({
  options: { into: { type: "string" }, binaries: { type: "boolean" } },
});
const DIST = into === undefined ? path.join(ROOT, "dist") : path.resolve(into);
const BUNDLE = path.join(DIST, "millrace.mjs");

/** File name of the native library next to the bundle. */
const NATIVE = "libsql.node";

/** Says which copy of that file to load. */
const WHICH_COPY = path.join(ROOT, "platform/shared/native-library.ts");

/** libSQL looks for its native library among packages; in the bundle it loads the engine's copy, or the file next to it. */
const nativeBeside: Plugin = {
  name: "native-beside",
  setup(builder) {
    builder.onLoad({ filter: /[\\/]libsql[\\/](?:index|promise)\.js$/ }, ({ path: file }) => {
      const text = readFileSync(file, "utf8");
      const loads = `const own = require(${JSON.stringify(WHICH_COPY)}).ownLibrary();
  return own === null ? require("./${NATIVE}") : require(own)`;
      const changed = text.replace("return require(`@libsql/${target}`)", () => loads)
        // It only chooses among packages, and reads files to do so.
        .replace(/let target = currentTarget\(\);[\s\S]*?(?=const own)/, "");
      if (changed === text) throw new Error(`${file} now loads its native library in another way`);
      return { contents: changed, loader: "js" };
    });
    builder.onResolve({ filter: /^\.\/libsql\.node$/ }, ({ path: file }) => ({ path: file, external: true }));
  },
};

/** Connections to web browsers. 1.2 MB that most never need: in the bundle, every runtime would read and keep them at each start. */
const WEBRTC = "webrtc.mjs";
const webRtcBeside: Plugin = {
  name: "webrtc-beside",
  setup(builder) {
    builder.onResolve({ filter: /^werift$/ }, () => ({ path: `./${WEBRTC}`, external: true }));
  },
};

/** Copies the native library for this machine; returns its new path. */
function copyNative(): string {
  const fromClient = createRequire(createRequire(import.meta.url).resolve("@libsql/client"));
  const fromLibsql = createRequire(fromClient.resolve("libsql"));
  const { familySync } = fromLibsql("detect-libc") as { familySync(): string | null };
  const abi = { linux: familySync() === "musl" ? "-musl" : "-gnu", win32: "-msvc" }[process.platform as string] ?? "";
  const target = path.join(DIST, NATIVE);
  copyFileSync(fromLibsql.resolve(`@libsql/${process.platform}-${process.arch}${abi}`), partial(target));
  renameSync(partial(target), target);
  return target;
}

/** Where a file is written first. Renaming it leaves programs alone that still run from the file it replaces. */
function partial(file: string): string {
  return `${file}.partial`;
}

async function bundle(): Promise<void> {
  mkdirSync(DIST, { recursive: true });
  const { metafile } = await build({
    ...RELEASE,
    absWorkingDir: ROOT,
    metafile: true,
    sourcemap: "external",
    entryPoints: [path.join(ROOT, "platform/any/main.ts")],
    outfile: partial(BUNDLE),
    legalComments: "eof",
    banner: { js: `#!/usr/bin/env node\n${REQUIRE_BANNER}` },
    plugins: [embedFiles, nativeBeside, webRtcBeside],
  });
  const webRtc = await build({
    ...RELEASE,
    absWorkingDir: ROOT,
    metafile: true,
    stdin: { contents: 'export { RTCPeerConnection } from "werift";', resolveDir: ROOT },
    outfile: partial(path.join(DIST, WEBRTC)),
    legalComments: "eof",
  });
  await stop();
  renameSync(partial(path.join(DIST, WEBRTC)), path.join(DIST, WEBRTC));
  report(path.join(DIST, WEBRTC));
  chmodSync(partial(BUNDLE), 0o755);
  report(copyNative());
  assertAscii(partial(BUNDLE));
  renameSync(partial(BUNDLE), BUNDLE);
  report(BUNDLE);
  const map = `${partial(BUNDLE)}.map`;
  const { sources, ...mapped } = JSON.parse(readFileSync(map, "utf8")) as { sources: string[] };
  // Named from the project's folder, wherever the build lies.
  const named = sources.map((file) => path.relative(ROOT, path.resolve(DIST, file)));
  put("millrace.mjs.map", JSON.stringify({ ...mapped, sources: named }));
  rmSync(map);
  put("THIRD-PARTY.txt", licencesOf([...Object.keys(metafile.inputs), ...Object.keys(webRtc.metafile.inputs)]));
  for (const [file, text] of Object.entries(manualFiles())) put(path.join("share", file), text);
}

/**
 * Throws when `file` holds a character beyond ASCII: V8 then keeps two bytes for each character of the whole text, 6 MB more
 * at each start. esbuild escapes such characters in strings, but not in regular expressions.
 */
function assertAscii(file: string): void {
  const text = readFileSync(file, "utf8");
  // deno-lint-ignore no-control-regex
  const at = text.search(/[^\x00-\x7f]/);
  if (at === -1) return;
  throw new Error(
    `write this with an escape: ${text.slice(at - 40, at + 40)}`,
  );
}

function put(name: string, text: string): void {
  const file = path.join(DIST, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(partial(file), text);
  renameSync(partial(file), file);
}

function report(file: string): void {
  console.log(`${path.relative(ROOT, file)}: ${(statSync(file).size / 1e6).toFixed(1)} MB`);
}

await bundle();
if (wantsBinaries === true) { for (const file of buildExecutables(BUNDLE, DIST)) report(file); }
exit(true);
