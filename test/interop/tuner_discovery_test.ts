/** Silicondust's own program, on another machine of the network, finds the tuner by a broadcast. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createEngine } from "../../src/engine.ts";
import { run } from "../support/process.ts";
import { until } from "../support/until.ts";
import { otherMachine } from "./support/other-machine.ts";

test("hdhomerun_config finds the tuner of --front hdhomerun under the id that it has over HTTP", async () => {
  const machine = await otherMachine(91);
  const ports = await loadPorts();
  const options = { peerHost: "127.0.0.1", peerPort: 0, dht: false, lsd: false } as const;
  const engine = await createEngine(ports, { fronts: ["hdhomerun"], ...options });
  const server = await ports.http.serve({ host: machine.ownHost, port: 0 }, (request, info) => {
    return engine.fetch(request, info);
  });
  try {
    engine.servedAt(server.address);
    const base = `http://${machine.ownHost}:${server.address.port}`;
    const { DeviceID: id } = await (await fetch(`${base}/discover.json`)).json();
    const [command, ...args] = [...machine.command, "hdhomerun_config", "discover"];
    // Its first search may come before the engine listens.
    await until("the tuner is found", async () => {
      const { text } = await run(command!, args);
      if (text.trim() === "no devices found") return false;
      assertEquals(text.trim(), `hdhomerun device ${id} found at ${machine.ownHost}`);
      return true;
    });
  } finally {
    await engine.close();
    await server.close(0);
    await machine.remove();
  }
});
