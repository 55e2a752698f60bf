/** Many machines of the local network that ask at the same moment; README.md has the figures. */
import { once } from "node:events";
import net from "node:net";
import process from "node:process";
import { test } from "node:test";
import { assertHarmless, type Target, withTarget } from "./support/target.ts";

/** Addresses that the clients come from: each counts as a machine. */
const MACHINES = 40;
/** Requests that each sends at once. */
const CONNECTIONS_EACH = 4;
const ROUNDS = 3;
const ADD = `{"action":"add","link":"${"0".repeat(40)}"}`;
const HELLO = `{"challenge":"${"0".repeat(32)}"}`;

/** Connections of all machines, none of which has asked yet. */
async function connected(target: Target): Promise<net.Socket[]> {
  const { hostname, port } = new URL(target.url);
  const sockets: net.Socket[] = [];
  for (let i = 0; i < MACHINES * CONNECTIONS_EACH; i++) {
    const socket = net.connect({
      host: hostname,
      port: Number(port),
      // Other systems have one loopback address.
      ...(process.platform === "linux" ? { localAddress: `127.0.1.${1 + i % MACHINES}` } : {}),
    });
    socket.on("error", () => {});
    await once(socket, "connect");
    sockets.push(socket);
  }
  return sockets;
}

/** Sends `request` on all connections at once; resolves when all have been answered or closed. */
async function askAtOnce(sockets: readonly net.Socket[], request: string): Promise<void> {
  const answers = sockets.map((socket) =>
    new Promise<void>((resolve) => {
      socket.once("data", () => resolve());
      socket.once("close", () => resolve());
    })
  );
  for (const socket of sockets) socket.write(request);
  await Promise.all(answers);
}

test("hundreds of requests that arrive at once keep another client waiting for few of them", () =>
  withTarget(async (target) => {
    const { host } = new URL(target.url);
    const envelope = `<s:Envelope><s:Body><u:Browse>${"<a/>".repeat(900)}</u:Browse></s:Body></s:Envelope>`;
    const requests = [
      `GET /openapi.json HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
      `GET /metrics HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
      `GET /lineup.json HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
      `GET /dlna/media/i1.ts HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
      `POST /cast/hello HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${HELLO.length}\r\n\r\n${HELLO}`,
      `POST /dlna/control/content-directory HTTP/1.1\r\nHost: ${host}\r\nContent-Type: text/xml\r\n` +
      `Content-Length: ${envelope.length}\r\n\r\n${envelope}`,
      `PROPFIND /webdav/ HTTP/1.1\r\nHost: ${host}\r\nDepth: 1\r\n\r\n`,
      `GET /stremio/catalog/movie/millrace-movie/search=a.json HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
      `GET /stremio-server/stats.json HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
      `GET /torznab/api?t=search&cat=5000,2000 HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
      `GET /qbittorrent/api/v2/torrents/info HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
      `POST /torrserver/torrents HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${ADD.length}\r\n\r\n${ADD}`,
    ];
    for (const request of requests) {
      const first = await connected(target);
      await askAtOnce(first.slice(0, 1), request);
      for (const socket of first) socket.destroy();
      await assertHarmless(target, async () => {
        for (let round = 0; round < ROUNDS; round++) {
          const sockets = await connected(target);
          await askAtOnce(sockets, request);
          for (const socket of sockets) socket.destroy();
        }
      });
    }
  }, ["--front", "dlna,hdhomerun,torrserver,webdav,stremio,stremio-server,torznab,qbittorrent"]));
