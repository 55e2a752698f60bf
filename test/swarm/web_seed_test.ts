import type { IncomingMessage, ServerResponse } from "node:http";
import { test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import type { Logger } from "../../src/ports.ts";
import { serveWeb } from "../support/web.ts";
import { hurried, Lab, soon } from "./support/lab.ts";
import { makeTorrent } from "./support/torrent.ts";

/** Sends the asked range of `data`. */
function sendRange(data: Uint8Array, request: IncomingMessage, response: ServerResponse): void {
  const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "")!;
  response.writeHead(206, { "content-range": `bytes ${from}-${to}/${data.length}` });
  response.end(data.subarray(Number(from), Number(to) + 1));
}

test("WebSeed sends the password of its URL as a field, asks for uncompressed bytes, and keeps it out of the log", async () => {
  const torrent = await makeTorrent({ bytes: 300_000 });
  await Lab.run(async (lab) => {
    const web = await serveWeb((request, response) => {
      if (web.asked.length === 1) return response.writeHead(500).end();
      if (request.headers.authorization !== `Basic ${btoa("us:p@w")}`) return response.writeHead(401).end();
      sendRange(torrent.data, request, response);
    });
    const lines: string[] = [];
    const log: Logger = { log: (...line) => void lines.push(JSON.stringify(line)), child: () => log };
    try {
      const node = await lab.node({ ports: { ...hurried(lab.ports, 20), log } });
      const webSeeds = [`${web.base.replace("//", "//us:p%40w@")}/noise`];
      const { swarm } = node.join({ metainfo: { ...torrent.metainfo, webSeeds } });
      await swarm.metadata(soon());
      assertEquals(await swarm.openReader(0).read(0, 300_000, { signal: soon() }), torrent.data);
      // Node's own fetch says it as well.
      for (const { headers } of web.asked) assertMatch(String(headers["accept-encoding"]), /^identity(, identity)?$/);
      const told = lines.filter((line) => line.includes("web seed failed"));
      assertEquals([told.length, told.join().includes("p%40w")], [1, false]);
    } finally {
      await web.close();
    }
  });
});
