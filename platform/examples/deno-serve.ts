/** An engine behind bare `Deno.serve`: `deno run -A platform/examples/deno-serve.ts`. */
import process from "node:process";
import { createPorts } from "../deno/ports.ts";
import { createEngine } from "../../src/mod.ts";

/** Keeps the example on this machine. Without these the engine finds peers by itself. */
const QUIET = { dht: false, lsd: false, portMapping: false, playerDiscovery: false, peerPort: 0 };

const engine = await createEngine(createPorts(), QUIET);
const server = Deno.serve(
  { hostname: "127.0.0.1", port: Number(process.env["PORT"] ?? 8080), onListen: () => {} },
  // The caller's address decides what the caller may do.
  (request, { remoteAddr: { hostname: host, port } }) => engine.fetch(request, { remote: { host, port } }),
);
console.log(`serving http://127.0.0.1:${server.addr.port}`);

process.once("SIGTERM", async () => {
  await engine.close();
  await server.shutdown();
});
