/** Silicondust's own program, on another machine of the network: it finds the tuner, scans it, and saves a channel. */
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { createEngine } from "../../src/engine.ts";
import { TOKEN } from "../api/support.ts";
import { EndlessClip } from "../playback/live-support.ts";
import { temporaryDirectory } from "../support/engine.ts";
import { run, start } from "../support/process.ts";
import { until } from "../support/until.ts";
import { serveWeb } from "../support/web.ts";
import { otherMachine } from "./support/other-machine.ts";

test("hdhomerun_config finds, scans and saves the channels of --front hdhomerun", async () => {
  const machine = await otherMachine(91);
  const directory = await temporaryDirectory();
  const web = await serveWeb((_request, response) => {
    const media = new EndlessClip();
    response.writeHead(200, { "content-type": "video/mp2t" }).write(media.next(4000));
    const timer = setInterval(() => response.write(media.next(50)), 50);
    response.on("close", () => clearInterval(timer));
  });
  const ports = await loadPorts();
  const options = { peerHost: "127.0.0.1", peerPort: 0, dht: false, lsd: false, accessToken: TOKEN } as const;
  const engine = await createEngine(ports, { fronts: ["hdhomerun"], ...options });
  const server = await ports.http.serve({ host: machine.ownHost, port: 0 }, (request, info) => {
    return engine.fetch(request, info);
  });
  const config = async (...args: string[]) => {
    const [command, ...before] = [...machine.command, "hdhomerun_config", ...args];
    return (await run(command!, before)).text.trim();
  };
  try {
    engine.servedAt(server.address);
    const base = `http://${machine.ownHost}:${server.address.port}`;
    const { DeviceID: id } = await (await fetch(`${base}/discover.json`)).json();
    // Its first search may come before the engine listens.
    await until("the tuner is found", async () => {
      const text = await config("discover");
      if (text === "no devices found") return false;
      assertEquals(text, `hdhomerun device ${id} found at ${machine.ownHost}`);
      return true;
    });
    const list =
      `#EXTM3U\n#EXTINF:-1 tvg-chno="5.1",Harbour\n${web.base}/a\n#EXTINF:-1 tvg-chno="7",Hill\n${web.base}/b\n`;
    const query = new URLSearchParams({ method: "playlist_import", token: TOKEN });
    await engine.fetch(new Request(`http://127.0.0.1/server/api?${query}`, { method: "POST", body: list }));
    await until("the list is there", async () => (await (await fetch(`${base}/lineup.json`)).json()).length === 2);

    assertEquals(await config(id, "get", "/sys/model"), "hdhomerun4_atsc");
    assertMatch(await config(id, "get", "/tuner0/nothing"), /^ERROR: /);
    // A scan asks 49 frequencies for a quarter of a second each, from the last to the first.
    const scan = await config(id, "scan", "/tuner0");
    assertMatch(
      scan,
      /SCANNING: 473000000 \(us-bcast:14\)\nLOCK: 8vsb \(ss=100 snq=100 seq=100\)\nTSID: 0x000E\nPROGRAM 1: 5.1 Harbour\nPROGRAM 2: 7 Hill\n/,
    );
    assertEquals([scan.match(/^LOCK: none/mg)?.length, scan.match(/^PROGRAM/mg)?.length], [48, 2]);

    await config(id, "set", "/tuner1/channel", "us-bcast:14");
    await config(id, "set", "/tuner1/program", "2");
    assertEquals(await config(id, "get", "/tuner1/vchannel"), "7");
    const path = `${directory.path}/saved.ts`;
    const [command, ...args] = [...machine.command, "hdhomerun_config", id, "save", "/tuner1", path];
    const saving = start(command!, args);
    const size = () => {
      try {
        return readFileSync(path).length;
      } catch {
        return 0;
      }
    };
    await until("some seconds were saved", () => size() > new EndlessClip().next(4000).length);
    assertEquals(web.asked.map(({ url }) => url), ["/b"]);
    saving.child.kill("SIGINT");
    await saving.exited;
    assertMatch(
      saving.output(),
      /\d+ packets received, 0 overflow errors, 0 network errors, 0 transport errors, 0 sequence errors/,
    );
    const saved = readFileSync(path);
    assert(saved.length % 188 === 0 && saved[0] === 0x47);
    await until("nobody is sent anything any more", async () => await config(id, "get", "/tuner1/target") === "none");
  } finally {
    await engine.close();
    await server.close(0);
    await web.close();
    await directory.remove();
    await machine.remove();
  }
});
