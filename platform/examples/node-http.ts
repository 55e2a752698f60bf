/** An engine inside a server made with `node:http`: `node platform/examples/node-http.ts`. Bun and Deno run it, too. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { loadPorts } from "../detect.ts";
import { createEngine } from "../../src/mod.ts";

/** Keeps the example on this machine. Without these the engine finds peers by itself. */
const QUIET = { dht: false, lsd: false, portMapping: false, playerDiscovery: false, peerPort: 0 };

const engine = await createEngine(await loadPorts(), QUIET);

/** Node's request as the engine takes it. */
function webRequest(incoming: IncomingMessage): Request {
  const headers = new Headers();
  for (const [name, values] of Object.entries(incoming.headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value);
  }
  const { method = "GET" } = incoming;
  const body = method === "GET" || method === "HEAD" ? null : Readable.toWeb(incoming) as ReadableStream<Uint8Array>;
  const init = { method, headers, body, duplex: "half" };
  return new Request(new URL(incoming.url ?? "/", `http://${incoming.headers.host ?? "localhost"}`), init);
}

async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const remote = { host: incoming.socket.remoteAddress ?? "", port: incoming.socket.remotePort ?? 0 };
  const { status, headers, body } = await engine.fetch(webRequest(incoming), { remote });
  outgoing.writeHead(status, [...headers].flat());
  if (body === null) outgoing.end();
  // When the player leaves, `pipeline` cancels the body: the engine then stops reading for it.
  else await pipeline(Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]), outgoing);
}

const server = createServer((incoming, outgoing) => {
  serve(incoming, outgoing).catch(() => outgoing.destroy());
});
server.listen(Number(process.env["PORT"] ?? 8080), "127.0.0.1", () => {
  console.log(`serving http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

process.once("SIGTERM", async () => {
  await engine.close();
  server.close();
  server.closeAllConnections();
});
