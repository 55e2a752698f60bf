/** Each program of `platform/examples` runs as a user runs it and plays a clip; on the runtime of the tests, or on the one it is for. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { readdirSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import process from "node:process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { runtimeName } from "../../platform/detect.ts";
import { commandOf, type Runtime } from "../../scripts/support/runtimes.ts";
import { createTransportFile, hashPieces } from "../../src/metainfo/create.ts";
import { type SeededFiles, seedFiles, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { clip, clipPath } from "../support/fixtures.ts";
import { type Program, run, start } from "../support/process.ts";
import { checkTs } from "../support/ts-check.ts";
import { serveWeb } from "../support/web.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const CLIP = "mp4-front.mp4";
const TOKEN = "e".repeat(64);
/** Examples with a test below. */
const tried = new Set<string>();

let seeded: SeededFiles;
let stream: string;
before(async () => {
  seeded = await seedFiles([{ path: CLIP, bytes: clip(CLIP) }]);
  stream = `magnet=${encodeURIComponent(seeded.magnet)}`;
});
after(() => seeded?.close());

/** Command and arguments that run an example. */
function commandLine(name: string, args: readonly string[], runtime: Runtime): [string, string[]] {
  tried.add(name);
  const [command, ...before] = commandOf(runtime);
  const flags = runtime === "deno" ? ["run", "-A", "--no-check"] : [];
  return [command!, [...before, ...flags, `platform/examples/${name}`, ...args]];
}

function startExample(
  name: string,
  args: readonly string[] = [],
  env = { PORT: "0" },
  runtime = runtimeName(),
): Program {
  return start(...commandLine(name, args, runtime), { cwd: ROOT, env });
}

/** Plays the clip, or the file at `url`, and checks every packet. Returns the bytes. */
async function play(url: string): Promise<Uint8Array> {
  const response = await fetch(url);
  assertEquals(response.status, 200, `${url}: ${response.status}`);
  const bytes = new Uint8Array(await response.arrayBuffer());
  const { problems, streams } = checkTs(bytes);
  assertEquals(problems, []);
  assert(streams.length > 0);
  return bytes;
}

/** Ends the program by SIGTERM; it must end by itself, with 0. */
async function end(program: Program): Promise<void> {
  // Not `child.kill`: after it Deno always reports death by that signal.
  process.kill(program.child.pid!, "SIGTERM");
  assertEquals(await program.exited, 0, program.output());
}

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}

for (
  const [name, runtime] of [["deno-serve.ts", "deno"], ["node-http.ts", runtimeName()], [
    "ram-only.ts",
    runtimeName(),
  ]] as const
) {
  test(`${name} serves a film and ends by SIGTERM`, async () => {
    const program = startExample(name, [], { PORT: "0" }, runtime);
    try {
      const [, url] = await program.line(/^serving (http:\S+)$/);
      await play(`${url}/engine/getstream?${stream}`);
      await end(program);
    } finally {
      await program.stop();
    }
  });
}

test("node-http.ts passes on posted transport files", async () => {
  const program = startExample("node-http.ts");
  try {
    const [, url] = await program.line(/^serving (http:\S+)$/);
    const posted = await fetch(`${url}/server/api?api_version=3&method=get_media_files`, {
      method: "POST",
      body: new Uint8Array(seeded.transportFile),
    });
    assertEquals((await posted.json()).result.files.map(({ filename }: { filename: string }) => filename), [CLIP]);
  } finally {
    await program.stop();
  }
});

test("hono-sub-path.ts serves its page, and a film whose addresses lead below the sub-path", async () => {
  const program = startExample("hono-sub-path.ts", [], { PORT: String(await freePort()) });
  try {
    const [, url] = await program.line(/^serving (http:\S+\/media)$/);
    assertEquals(await (await fetch(new URL("/", url))).text(), "a page of the app");
    const { response, error } = await (await fetch(`${url}/engine/getstream?${stream}&format=json`)).json();
    assertEquals(error, null);
    assert(response.playback_url.startsWith(`${url}/engine/`), response.playback_url);
    await play(response.playback_url);
    const list = await (await fetch(`${url}/engine/manifest.m3u8?${stream}`)).text();
    const segment = list.split("\n").find((line) => line !== "" && !line.startsWith("#"))!;
    await play(new URL(segment, `${url}/engine/manifest.m3u8`).href);
    await end(program);
  } finally {
    await program.stop();
  }
});

test("no-sockets.ts writes a film that comes from a web seed", async () => {
  const bytes = clip(CLIP);
  const web = await serveWeb((request, response) => {
    const [, from, to] = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? "") ?? [];
    response.writeHead(206, { "content-range": `bytes ${from}-${to}/${bytes.length}` });
    response.end(bytes.subarray(Number(from), Number(to) + 1));
  });
  const directory = await temporaryDirectory();
  try {
    const pieceLengthBytes = 65_536;
    const read = (offset: number, length: number) => Promise.resolve(bytes.subarray(offset, offset + length));
    const pieceHashes = await hashPieces(bytes.length, pieceLengthBytes, read);
    const file = { name: CLIP, sizeBytes: bytes.length, pieceLengthBytes, pieceHashes };
    const { bytes: transportFile } = await createTransportFile({ ...file, webSeeds: [`${web.base}/${CLIP}`] });
    const path = `${directory.path}/film.torrent`;
    await writeFile(path, transportFile);
    const { code, stdout, stderr } = await run(...commandLine("no-sockets.ts", [path], runtimeName()), { cwd: ROOT });
    assertEquals(code, 0, stderr);
    assertEquals(checkTs(stdout).problems, []);
    assert(stdout.length > 0 && web.asked.length > 0);
  } finally {
    await web.close();
    await directory.remove();
  }
});

test("middleware.ts plays a film, reports it and stops the session", async () => {
  const served = await serveEngine({ accessToken: TOKEN });
  try {
    const command = commandLine("middleware.ts", [served.url, stream], runtimeName());
    const { code, text, stderr } = await run(...command, { cwd: ROOT });
    assertEquals(code, 0, stderr);
    assertStringIncludes(text, `playing ${served.url}/engine/r/`);
    assertEquals(Number(/ (\d+) bytes of MPEG TS/.exec(text)?.[1]) > 0, true, text);
    assertStringIncludes(text, "stopped: ok");
    const { result } = await (await fetch(`${served.url}/server/api?api_version=3&method=get_settings&token=${TOKEN}`))
      .json();
    assertEquals(result.sessions, 0);
  } finally {
    await served.close();
  }
});

test("broadcast.ts sends a file that another engine plays", async () => {
  const program = startExample("broadcast.ts", [clipPath("ts-188.ts")]);
  const served = await serveEngine();
  try {
    const [, magnet] = await program.line(/^broadcasting (magnet:\S+)$/);
    const response = await fetch(`${served.url}/engine/getstream?magnet=${encodeURIComponent(magnet!)}`);
    assertEquals(response.status, 200);
    let bytes = 0;
    for await (const chunk of response.body!) if ((bytes += chunk.length) > 100_000) break;
    assert(bytes > 100_000);
    await end(program);
  } finally {
    await served.close();
    await program.stop();
  }
});

test("every example has a test", () => {
  assertEquals(
    readdirSync(`${ROOT}platform/examples`).filter((name) => name.endsWith(".ts")).sort(),
    [...tried].sort(),
  );
});
