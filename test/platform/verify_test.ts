/** `millrace verify`: whether films are whole, and its exit code. */
import { readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { runVerify } from "../../platform/verify/verify.ts";
import { parseConfig } from "../../src/config.ts";
import { withDirectory } from "./support.ts";

const fixture = (name: string) => fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url));

/** Runs the command in this process. */
async function verify(...args: readonly string[]) {
  const said: string[] = [];
  const config = parseConfig({ args: ["verify", ...args], env: {} });
  const code = await runVerify(config, await loadPorts(), new Promise(() => {}), (text) => said.push(text));
  return { code, said };
}

test("millrace verify counts the packets of a film, and exits with 0, when it is whole", async () => {
  const { code, said } = await verify(fixture("mkv-cues.mkv"));
  assertEquals([code, said.length], [0, 1]);
  assertMatch(said[0]!, /^whole {5}.*mkv-cues\.mkv\n {10}video 1, h264: 150 packets, 150 in MPEG TS, 150 in HLS\n/);
});

test("millrace verify says what is lost, and exits with 3, when one of its films is not whole", () =>
  withDirectory(async (directory) => {
    const cut = path.join(directory, "cut.mp4");
    writeFileSync(cut, readFileSync(fixture("mp4-fragmented-bare.mp4")).subarray(0, -9000));
    const none = path.join(directory, "none.mkv");
    writeFileSync(none, "no film");
    const { code, said } = await verify("--json", fixture("mp4-front.mp4"), cut, none);
    assertEquals(code, 3);
    const reports = said.map((line) => JSON.parse(line));
    assertEquals(reports.map(({ problems }) => problems.length > 0), [false, true, true]);
    assertMatch(reports[1].problems.join(), /cannot be read/);
  }));

test("millrace verify reads a film on a web server by ranges, and says so when it sends none", async () => {
  const film = readFileSync(fixture("mp4-front.mp4"));
  const server = http.createServer((request, response) => {
    const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
    if (request.url !== "/film.mp4" || start === undefined) return void response.end(film);
    const part = film.subarray(Number(start), Number(end) + 1);
    response.writeHead(206, { "content-range": `bytes ${start}-${end}/${film.length}` });
    response.end(part);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { code, said } = await verify(`${base}/film.mp4`, `${base}/other.mp4`);
    assertEquals(code, 3);
    assertMatch(said[0]!, /^whole .*film\.mp4\n/);
    assertMatch(said[1]!, /^not whole .*other\.mp4\n {10}→ .* its server sends no ranges/);
  } finally {
    server.close();
  }
});

test("millrace verify asks for a film when it is given none", async () => {
  await assertRejects(() => verify(), Error, "verify needs films");
});
