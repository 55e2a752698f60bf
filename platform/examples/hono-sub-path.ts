/**
 * An engine under `/media` of a Hono app that has pages of its own. `publicUrl` puts the sub-path into the addresses that
 * the engine gives to players, so the port must be known before the engine starts: `PORT=8080 node platform/examples/hono-sub-path.ts`.
 */
import process from "node:process";
import { Hono } from "hono";
import { loadPorts } from "../detect.ts";
import { createEngine, type RequestInfo } from "../../src/mod.ts";

/** Keeps the example on this machine. Without these the engine finds peers by itself. */
const QUIET = { dht: false, lsd: false, portMapping: false, playerDiscovery: false, peerPort: 0 };

const port = Number(process.env["PORT"] ?? 8080);
const publicUrl = `http://127.0.0.1:${port}/media`;
const ports = await loadPorts();
const engine = await createEngine(ports, { ...QUIET, publicUrl });

const app = new Hono<{ Bindings: RequestInfo }>();
app.get("/", (c) => c.text("a page of the app"));
// `mount` takes the sub-path off before it calls the engine.
app.mount("/media", (request, info: RequestInfo) => engine.fetch(request, info), { optionHandler: (c) => c.env });

const server = await ports.http.serve({ host: "127.0.0.1", port }, (request, info) => app.fetch(request, info));
console.log(`serving ${publicUrl}`);

process.once("SIGTERM", async () => {
  await engine.close();
  await server.close(0);
});
