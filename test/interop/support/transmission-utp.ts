/**
 * transmission-daemon and our engine in a network of their own (it dials no loopback address of a tracker):
 * `unshare -n deno run -A transmission-utp.ts dials|is-dialled`. Exits with 0 when everything has come over uTP.
 */
import { createServer } from "node:http";
import { execFileSync } from "node:child_process";
import process from "node:process";
import { transmission } from "../peers/clients.ts";
import { assertFetched, withContent } from "../peers/content.ts";
import { playAll, withOurSeeder, withPlayer } from "../peers/ours.ts";
import { freePort } from "../../support/tracker.ts";

const HOST = "10.9.0.1";

function run(...[command, ...args]: [string, ...string[]]): void {
  execFileSync(command, args, { stdio: "inherit" });
}

/** Transmission fetches from us; its tracker names us. TCP is open: it dials by uTP alone until something came by it. */
async function dials(): Promise<void> {
  await withContent({ filmMib: 2 }, async (content, cleanup) => {
    await withOurSeeder(content, { peerHost: HOST }, async (ours) => {
      const port = Number(ours.peer.split(":")[1]);
      const peers = Uint8Array.of(...HOST.split(".").map(Number), port >> 8, port & 0xff);
      const answer = Buffer.concat([Buffer.from("d8:intervali1800e5:peers6:"), peers, Buffer.from("e")]);
      const tracker = createServer((_request, response) => void response.end(answer));
      const trackerPort = await freePort();
      await new Promise<void>((resolve) => tracker.listen(trackerPort, "127.0.0.1", resolve));
      cleanup(() => new Promise<void>((resolve) => (tracker.closeAllConnections(), tracker.close(() => resolve()))));
      const magnet = content.magnet({ trackers: [`http://127.0.0.1:${trackerPort}/announce`] });
      const fetcher = await transmission(content, { mode: "fetch", magnet, utp: true, host: HOST });
      cleanup(() => fetcher.stop());
      await fetcher.done();
      await assertFetched(content, fetcher.directory);
    });
  });
}

/** We play what it seeds, while its network drops TCP to its port. */
async function isDialled(): Promise<void> {
  await withContent({ filmMib: 2 }, async (content, cleanup) => {
    const seeder = await transmission(content, { mode: "seed", utp: true, host: HOST });
    cleanup(() => seeder.stop());
    const port = seeder.peer.split(":")[1]!;
    const rules =
      `table inet cut { chain in { type filter hook input priority 0; policy accept; tcp dport ${port} drop; }; }`;
    execFileSync("nft", ["-f", "-"], { input: rules });
    await withPlayer({ peerHost: HOST }, async (player) => {
      await playAll(player, content, { magnet: content.magnet({ peers: [seeder.peer] }) });
    });
  });
}

run("ip", "link", "set", "lo", "up");
run("ip", "addr", "add", `${HOST}/32`, "dev", "lo");
await (process.argv[2] === "dials" ? dials() : isDialled());
process.exit(0);
