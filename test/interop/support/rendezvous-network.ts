/**
 * Peers that nobody can dial, and one in the open that brings them together (BEP 55): `unshare -n deno run -A rendezvous-network.ts
 * asks|asked|between`. It names our part; the others are libtorrent. A firewall lets in only what answers. Exits with 0 when they met.
 */
import { execFileSync } from "node:child_process";
import process from "node:process";
import { libtorrent } from "../peers/clients.ts";
import { assertSame, withContent } from "../peers/content.ts";
import { learnPeer, read, startPlayback, withOurSeeder, withPlayer } from "../peers/ours.ts";

const [OPEN, ONE, OTHER] = ["10.9.0.9", "10.9.0.1", "10.9.0.2"];
const RULES = `table inet filter {
  chain input {
    type filter hook input priority 0; policy accept;
    ip daddr { ${ONE}, ${OTHER} } meta l4proto { tcp, udp } ct state new drop
  }
}`;

const part = process.argv[2];
execFileSync("ip", ["link", "set", "lo", "up"]);
for (const host of [OPEN, ONE, OTHER]) execFileSync("ip", ["addr", "add", `${host}/32`, "dev", "lo"]);
execFileSync("nft", ["-f", "-"], { input: RULES });

await withContent({ filmMib: 1 }, async (content, cleanup) => {
  const client = async (options: Parameters<typeof libtorrent>[1]) => {
    const started = await libtorrent(content, { pex: true, utp: "only", ...options });
    cleanup(() => started.stop());
    return started;
  };
  if (part === "between") {
    // So slow that both go on looking for peers.
    const slow = { uploadLimitBytesPerSecond: 16_384 };
    return await withOurSeeder(content, { peerHost: OPEN, pex: true, ...slow }, async ({ engine }) => {
      const peers = [`${OPEN}:${engine.peerAddress!.port}`];
      await client({ mode: "fetch", host: OTHER, peers });
      const asking = await client({ mode: "fetch", host: ONE, peers });
      await asking.program.line(/^PEERS 2$/, 60_000);
    });
  }
  const between = await client({ mode: "idle", host: OPEN });
  if (part === "asks") {
    await client({ mode: "seed", host: OTHER, peers: [between.peer] });
    await between.program.line(/^PEERS 1$/);
    return await withPlayer({ peerHost: ONE, pex: true }, async (player) => {
      const url = await startPlayback(player, "getfile", { magnet: content.magnet({ peers: [between.peer] }) });
      assertSame(await read(url), content.files[0]!.bytes, "film");
    });
  }
  await withOurSeeder(content, { peerHost: OTHER, pex: true }, async ({ engine }) => {
    learnPeer(engine, content, between.peer);
    await between.program.line(/^PEERS 1$/);
    const asking = await client({ mode: "fetch", host: ONE, peers: [between.peer] });
    await asking.done();
  });
});
process.exit(0);
