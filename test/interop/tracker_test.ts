/** Discovery against opentracker, a tracker in wide use. */
import { test } from "node:test";
import { type ChildProcess, spawn } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert, assertEquals } from "@std/assert";
import { toHex } from "../../src/bytes/hex.ts";
import { createDiscovery, type DiscoveryOptions } from "../../src/discovery/discovery.ts";
import type { Discovery } from "../../src/discovery/types.ts";
import { testPorts, until } from "../discovery/support/ports.ts";

const OPENTRACKER = "/usr/bin/opentracker";

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}

/** Whether the tracker's HTTP side answers. */
async function answers(port: number): Promise<boolean> {
  return await fetch(`http://127.0.0.1:${port}/stats`).then((response) => response.text()).then(
    () => true,
    () => false,
  );
}

/** Runs `body` with opentracker serving `infohash` on TCP and UDP `port`; fails when it cannot be started. */
async function withOpentracker(infohash: Uint8Array, body: (port: number) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "millrace-opentracker-"));
  // Debian's build serves listed torrents only; it reads the list as user "nobody", by a name relative to its root.
  await chmod(folder, 0o755);
  await writeFile(join(folder, "allowed"), `${toHex(infohash)}\n`);
  const port = await freePort();
  const args = ["-i", "127.0.0.1", "-p", String(port), "-P", String(port), "-d", folder, "-w", "allowed"];
  const tracker: ChildProcess = spawn(OPENTRACKER, args, { cwd: folder, stdio: "ignore" });
  const failed = new Promise<never>((_, reject) => {
    tracker.once("error", reject);
    tracker.once("exit", (code) => reject(new Error(`${OPENTRACKER} ended with ${code}`)));
  });
  failed.catch(() => {});
  const run = async () => {
    for (let tries = 0; !(await answers(port)); tries++) {
      if (tries === 200) throw new Error(`${OPENTRACKER} does not answer`);
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    await body(port);
  };
  try {
    await Promise.race([run(), failed]);
  } finally {
    tracker.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  }
}

function engine(peerPort: number): Promise<Discovery> {
  const options: DiscoveryOptions = {
    peerId: crypto.getRandomValues(new Uint8Array(20)),
    peerPort: () => peerPort,
    dht: { enabled: false, bootstrap: [], statePath: null },
    lsd: { enabled: false },
    userAgent: "millrace/test",
  };
  return createDiscovery(testPorts(), options);
}

for (const scheme of ["http", "udp"] as const) {
  test(`Discovery meets another peer through opentracker over ${scheme}, and leaves it with stopped`, async () => {
    const infohash = crypto.getRandomValues(new Uint8Array(20));
    await withOpentracker(infohash, async (port) => {
      const trackers = [[`${scheme}://127.0.0.1:${port}/announce`]];
      const request = (found: string[], leftBytes: number) => ({
        infohash,
        trackers,
        isPrivate: true,
        onPeer: (peer: { host: string; port: number }) => found.push(`${peer.host}:${peer.port}`),
        state: () => ({ uploadedBytes: 0, downloadedBytes: 0, leftBytes }),
      });
      const [seeder, leecher, late] = await Promise.all([engine(7101), engine(7102), engine(7103)]);
      const seeding = seeder.start(request([], 0));
      await until(() => seeding.status()[0]!.nextAnnounceMs !== null, "the seeder announced");
      assertEquals(seeding.status()[0]!.lastError, null);

      const found: string[] = [];
      const session = leecher.start(request(found, 1_000));
      await until(() => session.status()[0]!.nextAnnounceMs !== null, "the leecher announced");
      assert(found.includes("127.0.0.1:7101"), found.join());
      assertEquals(session.status()[0]!.seeders, 1);

      await seeder.close();
      const foundLate: string[] = [];
      const lateSession = late.start(request(foundLate, 1_000));
      await until(() => lateSession.status()[0]!.nextAnnounceMs !== null, "the late one announced");
      assert(foundLate.includes("127.0.0.1:7102") && !foundLate.includes("127.0.0.1:7101"), foundLate.join());
      await Promise.all([leecher.close(), late.close()]);
    });
  });
}
