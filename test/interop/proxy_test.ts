/** The engine behind real proxies: microsocks, dante, tinyproxy, squid. */
import { spawn } from "node:child_process";
import { chmod, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { DhtNode } from "../../src/discovery/dht-node.ts";
import { createDiscovery } from "../../src/discovery/discovery.ts";
import { createEgress } from "../../src/engine/egress.ts";
import { createPeerId } from "../../src/wire/peer-id.ts";
import { bytesOf, seedNoise, startSession, statOf } from "../loopback/support.ts";
import { serveEngine, temporaryDirectory } from "../support/engine.ts";
import { freePort, startTracker } from "../support/tracker.ts";
import { until } from "../support/until.ts";

const CREDENTIALS = "us%40er:p%3Aw@";

/** A proxy on loopback. */
interface RealProxy {
  readonly url: string;
  stop(): Promise<void>;
}

async function startReal(name: "microsocks" | "danted" | "tinyproxy" | "squid"): Promise<RealProxy> {
  const directory = await temporaryDirectory();
  await chmod(directory.path, 0o755);
  const port = await freePort();
  const file = join(directory.path, "proxy.conf");
  const setUps = {
    microsocks: {
      url: `socks5://${CREDENTIALS}127.0.0.1:${port}`,
      config: "",
      args: ["-i", "127.0.0.1", "-p", String(port), "-u", "us@er", "-P", "p:w"],
    },
    danted: {
      url: `socks5h://127.0.0.1:${port}`,
      args: ["-f", file],
      config: [
        `internal: 127.0.0.1 port = ${port}`,
        "external: lo",
        "clientmethod: none",
        "socksmethod: none",
        "user.unprivileged: nobody",
        "client pass { from: 0/0 to: 0/0 }",
        "socks pass { from: 0/0 to: 0/0 }",
        "",
      ].join("\n"),
    },
    tinyproxy: {
      url: `http://user:pass@127.0.0.1:${port}`,
      args: ["-d", "-c", file],
      config: [`Port ${port}`, "Listen 127.0.0.1", "Timeout 600", "BasicAuth user pass", ""].join("\n"),
    },
    squid: {
      url: `http://127.0.0.1:${port}`,
      args: ["-N", "-f", file],
      config: [
        `http_port 127.0.0.1:${port}`,
        // As shipped it allows CONNECT to 443 alone.
        "http_access allow all",
        "cache deny all",
        "access_log none",
        "cache_log /dev/null",
        "pid_filename none",
        `coredump_dir ${directory.path}`,
        "pinger_enable off",
        "",
      ].join("\n"),
    },
  } as const;
  const { url, config, args } = setUps[name];
  await writeFile(file, config);
  const child = spawn(name, args, { stdio: "ignore", cwd: directory.path });
  const ended = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(`${name} is not installed: ${error.message}`));
    child.once("exit", (code) => resolve(`${name} ended with ${code}`));
  });
  let failure: string | null = null;
  void ended.then((text) => failure = text);
  await until(`${name} listens`, async () => {
    if (failure !== null) throw new Error(failure);
    return await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => (socket.destroy(), resolve(true)));
      socket.once("error", () => resolve(false));
    });
  });
  return {
    url,
    async stop() {
      child.kill("SIGKILL");
      await ended;
      await directory.remove();
    },
  };
}

for (const name of ["microsocks", "danted", "tinyproxy", "squid"] as const) {
  test(`serve plays through ${name}: peers, an HTTP tracker, and a UDP tracker where the proxy passes UDP on`, async () => {
    const proxy = await startReal(name);
    const known = await seedNoise(2_000_000);
    const tracker = await startTracker([known.metainfo.infohashHex]);
    await known.close();
    const seeded = await seedNoise(2_000_000, { trackers: [[tracker.http]] });
    const watching = await serveEngine({ proxy: proxy.url, startTimeoutMs: 60_000 });
    const passesUdp = name === "danted";
    const announce = passesUdp ? tracker.udp : tracker.http;
    try {
      const magnet = `magnet:?xt=urn:btih:${seeded.metainfo.infohashHex}&tr=${encodeURIComponent(announce)}`;
      const started = await startSession(watching, "getfile", { magnet });
      assertEquals(await bytesOf(started.playback_url), seeded.data);
      const { proxy: facts } = await statOf(started) as { proxy: Record<string, string | null> };
      assertEquals(facts["server"], proxy.url.replace(/\/\/.*@/, "//").replace("socks5h", "socks5"));
      assertEquals(facts["trouble"], null);
      if (proxy.url.startsWith("http:")) assertMatch(facts["udp_trouble"]!, /no UDP/);
    } finally {
      await watching.close();
      await seeded.close();
      await tracker.stop();
      await proxy.stop();
    }
  });
}

test("createDiscovery() asks the DHT through danted, first contacts by address and by name", async () => {
  const proxy = await startReal("danted");
  const ports = await loadPorts({ log: { level: "error" } });
  const node = await DhtNode.open(ports, { bootstrap: [], statePath: null, host: "127.0.0.1" });
  const { swarmPorts, proxied } = createEgress(ports, { proxy: proxy.url });
  try {
    for (const host of ["127.0.0.1", "localhost"]) {
      const discovery = await createDiscovery(swarmPorts, {
        peerId: createPeerId(),
        peerPort: () => 0,
        dht: { enabled: true, bootstrap: [`${host}:${node.port}`], statePath: null },
        lsd: { enabled: false },
        userAgent: "test",
      });
      await until(`the node answers at ${host}`, () => discovery.dhtAnswers?.() === true);
      assertEquals(proxied!.health.udpTrouble, null);
      await discovery.close();
    }
  } finally {
    await node.close();
    await proxy.stop();
  }
});
