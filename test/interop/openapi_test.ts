/** Checks `/openapi.json` with third-party tools: a linter, and two generators whose clients call a real engine. */
import { copyFile, readFile, symlink, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import process from "node:process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { assertEquals, assertStringIncludes } from "@std/assert";
import { type SeededFiles, seedFiles, type ServedEngine, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { run } from "../support/process.ts";

/** Debian's packages belong to this interpreter. */
const PYTHON = "/usr/bin/python3";
/** Both programs write this. */
const FACTS = {
  same_version: true,
  without_token: 4,
  ids: [1, 2],
  enabled: true,
  total: 2,
  titles: ["First"],
  tags: [["a,b", "c"]],
  found: ["Second"],
  analysed: 2,
  auth: ["none", -1, null],
  missing: 5,
  kind: "playlist_import",
  called: null,
  is_live: 0,
  has_event: true,
  stopped: "ok",
  gone: "unknown playback session id",
};

/** How TypeScript checks the program. */
const STRICT = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noEmit: true,
  skipLibCheck: true,
  allowImportingTsExtensions: true,
  target: "es2022",
  module: "nodenext",
  lib: ["es2022", "dom", "dom.iterable"],
  types: [],
};

let seeder: SeededFiles;
let folder: { path: string; remove(): Promise<void> };
/** Of each client, since both begin with an empty playlist. */
let served: ServedEngine[];

before(async () => {
  seeder = await seedFiles([{ path: "clip.mp4", bytes: clip("mp4-end.mp4") }]);
  served = [await serveEngine(), await serveEngine()];
  folder = await temporaryDirectory();
  await writeFile(join(folder.path, "openapi.json"), await (await fetch(`${served[0]!.url}/openapi.json`)).text());
});
after(async () => {
  await Promise.all((served ?? []).map((one) => one.close()));
  await seeder?.close();
  await folder?.remove();
});

/** Runs a tool in the folder of the document; returns its output if it succeeds. */
async function succeed(command: string, args: readonly string[], cwd = folder.path): Promise<string> {
  const { code, text, stderr } = await run(command, args, { cwd, timeoutMs: 120_000 });
  assertEquals(code, 0, `${command} ${args.join(" ")}\n${text.slice(-3000)}\n${stderr.slice(-3000)}`);
  return text + stderr;
}

const program = (name: string) => fileURLToPath(new URL(`./generated/${name}`, import.meta.url));

/** The packages beside a tool from npm. */
function packagesOf(tool: string): string {
  const found = (process.env["PATH"] ?? "").split(delimiter).find((entry) => existsSync(join(entry, tool)));
  if (found === undefined) throw new Error(`${tool} is not installed`);
  return dirname(found);
}

test("redocly's recommended rules find nothing to say about the document", async () => {
  const told = await succeed("redocly", ["lint", "--extends=recommended", "openapi.json"]);
  assertStringIncludes(told, "Your API description is valid");
  assertEquals(/\bwarnings?\b/.test(told), false, told);
});

test("the client that openapi-typescript makes of the document passes the type check and calls the engine", async () => {
  await succeed("openapi-typescript", ["openapi.json", "-o", "schema.d.ts"]);
  await copyFile(program("client.ts"), join(folder.path, "client.ts"));
  await writeFile(join(folder.path, "package.json"), '{"type":"module"}');
  await symlink(packagesOf("openapi-typescript"), join(folder.path, "node_modules"));
  await writeFile(
    join(folder.path, "tsconfig.json"),
    JSON.stringify({ compilerOptions: STRICT, files: ["client.ts"] }),
  );
  await succeed("tsc", ["-p", "."]);
  const told = await run("node", ["client.ts", served[0]!.url, seeder.magnet], { cwd: folder.path });
  assertEquals([told.code, JSON.parse(told.text || "null")], [0, FACTS], told.stderr);
});

test("the client that openapi-generator makes of the document in Python calls the engine", async () => {
  await succeed("openapi-generator", [
    ...["generate", "-i", "openapi.json", "-g", "python-experimental", "-o", "python"],
    ...[
      "--package-name",
      "millrace_client",
      "--global-property",
      "apiTests=false,modelTests=false,apiDocs=false,modelDocs=false",
    ],
  ]);
  // The generated code imports it and never uses it; Debian has no package of it.
  await writeFile(join(folder.path, "python/nulltype.py"), "");
  await writeFile(join(folder.path, "python/client.py"), await readFile(program("client.py")));
  const told = await run(PYTHON, ["client.py", served[1]!.url, seeder.magnet], { cwd: join(folder.path, "python") });
  assertEquals([told.code, JSON.parse(told.text || "null")], [0, FACTS], told.stderr);
});
