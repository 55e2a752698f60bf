import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { loadPorts } from "../../platform/detect.ts";
import { hasCode } from "../../src/errors.ts";
import { UtpEndpoint } from "../../src/utp/utp-endpoint.ts";
import { start, withDirectory } from "./support.ts";

for (const isOn of [true, false]) {
  test(`seed ${isOn ? "accepts" : "--no-utp refuses"} peers over UDP`, async () => {
    await withDirectory(async (directory) => {
      const file = path.join(directory, "film.bin");
      writeFileSync(file, new Uint8Array(20_000));
      const flags = ["--file", file, "--peer-host", "127.0.0.1", "--peer-port", "0", ...(isOn ? [] : ["--no-utp"])];
      const program = start(["seed", ...flags]);
      const { clock, udp } = await loadPorts({ log: { level: "error" } });
      const guest = new UtpEndpoint({ clock, random: Math.random, open: () => udp.bind({ host: "127.0.0.1" }) });
      try {
        const port = Number(JSON.parse(await program.firstLine).peer.split(":")[1]);
        const dialled = await guest.connect({ host: "127.0.0.1", port }, new AbortController()).catch((error) => error);
        if (isOn) assertEquals(dialled.remote.port, port);
        else assert(hasCode(dialled, "connection_failed"), String(dialled));
      } finally {
        guest.close();
        program.child.kill("SIGKILL");
        await program.ended;
      }
    });
  });
}
