/** Bodies of requests that do not end, and callers that ask for everything at once. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { request as httpRequest } from "node:http";
import net from "node:net";
import { CALL_LIMITS } from "../../src/http/admission.ts";
import { SESSION_LIMITS } from "../../src/playback/session-limits.ts";
import { createTransportFile } from "../../src/metainfo/create.ts";
import { assertHarmless, type Target, withTarget } from "./support/target.ts";

const MIB = 1024 * 1024;
/** A page that the user lets play, and that wants more. */
const ORIGIN = "http://page.example";
const FLAGS = ["--allow-origin", ORIGIN];
/** What browsers say on its behalf. */
const PAGE = { origin: ORIGIN, "sec-fetch-site": "cross-site" };

/** A POST to `path` that declares `declaredBytes` and sends only `sentBytes`, or as much as the engine takes. */
function unfinished(
  target: Target,
  path: string,
  headers: string,
  declaredBytes: number,
  sentBytes: number,
): net.Socket {
  const { hostname, port, host } = new URL(target.url);
  const socket = net.connect(Number(port), hostname);
  socket.on("error", () => {});
  socket.resume();
  socket.write(`POST ${path} HTTP/1.1\r\nHost: ${host}\r\n${headers}Content-Length: ${declaredBytes}\r\n\r\n`);
  const chunk = new Uint8Array(256 * 1024);
  let left = sentBytes;
  const send = () => {
    while (left > 0 && socket.writable) {
      left -= chunk.length;
      if (!socket.write(chunk)) return void socket.once("drain", send);
    }
  };
  send();
  return socket;
}

/** Resolves when `sockets` neither send nor receive any more. */
async function settled(sockets: readonly net.Socket[]): Promise<void> {
  const moved = () => sockets.reduce((sum, { bytesWritten, bytesRead }) => sum + bytesWritten + bytesRead, 0);
  for (let still = 0, last = -1; still < 4;) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    const now = moved();
    still = now === last ? still + 1 : 0;
    last = now;
  }
}

for (const path of ["/engine/getfile", "/server/api", "/server/api?method=playlist_import&token=wrong"]) {
  test(`the engine keeps answering while a page sends 200 endless bodies to ${path}`, () =>
    withTarget(async (target) => {
      const headers = `Origin: ${ORIGIN}\r\n` +
        "Sec-Fetch-Site: cross-site\r\nContent-Type: application/octet-stream\r\n";
      const sockets: net.Socket[] = [];
      try {
        await assertHarmless(target, async () => {
          for (let i = 0; i < 200; i++) {
            sockets.push(unfinished(target, path, headers, 16 * MIB - 10, MIB));
            if (i % 10 === 9) await new Promise((resolve) => setTimeout(resolve, 50));
          }
          await settled(sockets);
        });
      } finally {
        for (const socket of sockets) socket.destroy();
      }
    }, FLAGS));
}

test("the engine ends bodies that come in chunks of single bytes", () =>
  withTarget(async (target) => {
    const { hostname, port, host } = new URL(target.url);
    const text = new TextEncoder().encode("1\r\na\r\n".repeat(40_000));
    const ends: Promise<unknown>[] = [];
    await assertHarmless(target, async () => {
      for (let i = 0; i < 4; i++) {
        const socket = net.connect(Number(port), hostname);
        socket.on("error", () => {});
        socket.resume();
        socket.write(`POST /engine/getfile HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n`);
        socket.write(text);
        ends.push(new Promise((resolve) => socket.once("close", resolve)));
      }
      await Promise.all(ends);
    });
  }));

/** POSTs a transport file; returns the status. */
function startOf(target: Target, path: string, torrent: Uint8Array, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(target.url + path, { method: "POST", headers, agent: false }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode ?? 0));
    });
    request.on("error", reject);
    request.end(torrent);
  });
}

test("a page that may play cannot use up the sessions of the engine", () =>
  withTarget(async (target) => {
    const pieceHashes = new Uint8Array(20 * 64);
    const { bytes } = await createTransportFile({
      name: "film.mkv",
      sizeBytes: 16 * MIB,
      pieceLengthBytes: MIB / 4,
      pieceHashes,
      trackers: [],
    });
    const start = (name: string, headers: Record<string, string>) =>
      startOf(target, `/engine/getfile?pid=${name}&use_api_stop=1`, bytes, headers);
    let started = 0;
    await assertHarmless(target, async () => {
      for (let i = 0; i < 100; i += 20) {
        const statuses = await Promise.all(Array.from({ length: 20 }, (_, n) => start(`page${i + n}`, PAGE)));
        started += statuses.filter((status) => status === 302).length;
        assert(statuses.every((status) => [302, 503].includes(status)), String(statuses));
      }
    });
    assertEquals(started, SESSION_LIMITS.other, "sessions of the page");
    assertEquals(await start("mine", {}), 302);
  }, FLAGS));

test("a page that may play cannot keep others from calling the API", () =>
  withTarget(async (target) => {
    const call = (n: number, leave: AbortSignal) => {
      const infohash = n.toString(16).padStart(40, "0");
      const url = `${target.url}/server/api?method=get_media_files&infohash=${infohash}`;
      return fetch(url, { headers: PAGE, signal: leave }).then((answer) => answer.status, () => 0);
    };
    const leave = new AbortController();
    let calls: Promise<number>[] = [];
    await assertHarmless(target, async () => {
      calls = Array.from({ length: 40 }, (_, n) => call(n, leave.signal));
      let refused = 0;
      for (const each of calls) void each.then((status) => refused += Number(status === 429));
      while (refused < 40 - CALL_LIMITS.page) await new Promise((resolve) => setTimeout(resolve, 20));
      const own = await fetch(`${target.url}/server/api?method=get_status`);
      assertEquals((await own.json()).error, null);
    });
    leave.abort();
    await Promise.all(calls);
  }, FLAGS));
