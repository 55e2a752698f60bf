/** An engine that writes nothing: pieces, settings and the library are in memory and gone when it ends. */
import process from "node:process";
import { loadPorts } from "../detect.ts";
import { createEngine, MillraceError } from "../../src/mod.ts";

/** Keeps the example on this machine. Without these the engine finds peers by itself. */
const QUIET = { dht: false, lsd: false, portMapping: false, playerDiscovery: false, peerPort: 0 };

const real = await loadPorts();
const refuse = (): Promise<never> => Promise.reject(new MillraceError("io", "this engine has no disk"));
/** Not needed, since without directories the engine asks for no file: this shows it. */
const files = {
  ...real.files,
  open: refuse,
  readFile: refuse,
  writeFile: refuse,
  makeDirectory: refuse,
  rename: refuse,
  remove: refuse,
};

const engine = await createEngine({ ...real, files }, {
  cache: "ram",
  cacheLimitBytes: 128 * 1024 * 1024,
  ...QUIET,
});
const server = await real.http.serve(
  { host: "127.0.0.1", port: Number(process.env["PORT"] ?? 8080) },
  (request, info) => engine.fetch(request, info),
);
console.log(`serving http://127.0.0.1:${server.address.port}`);

process.once("SIGTERM", async () => {
  await engine.close();
  await server.close(0);
});
