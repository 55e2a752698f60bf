/** opentracker, a tracker in wide use, on free ports of loopback. */
import { chmod, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { temporaryDirectory } from "./engine.ts";
import { start } from "./process.ts";
import { until } from "./until.ts";

/** What a tracker knows of one torrent. */
export interface Scrape {
  readonly seeders: number;
  readonly leechers: number;
}

/** A running tracker. */
export interface Tracker {
  /** Announce addresses. */
  readonly http: string;
  readonly udp: string;
  scrape(infohash: Uint8Array): Promise<Scrape>;
  stop(): Promise<void>;
}

/** A TCP port that is free now, also as a UDP port in all likelihood. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}

/** Starts opentracker for `infohashesHex`; fails with its name when it is not installed. */
export async function startTracker(infohashesHex: readonly string[]): Promise<Tracker> {
  const directory = await temporaryDirectory();
  // Debian's build serves listed torrents only; it reads the list as user "nobody", by a name relative to its root.
  await chmod(directory.path, 0o755);
  await writeFile(join(directory.path, "allowed"), infohashesHex.map((hash) => `${hash}\n`).join(""));
  const port = await freePort();
  const at = ["-i", "127.0.0.1", "-p", String(port), "-P", String(port)];
  const program = start("opentracker", [...at, "-d", directory.path, "-w", "allowed"], { cwd: directory.path });
  const stop = async () => {
    await program.stop();
    await directory.remove();
  };
  let ended = false;
  void program.exited.then(() => ended = true);
  const base = `http://127.0.0.1:${port}`;
  try {
    await until("opentracker answers", async () => {
      if (ended) throw new Error(`opentracker ended or is not installed: ${program.output().slice(-500)}`);
      return await fetch(`${base}/stats`).then(async (response) => (await response.text(), true), () => false);
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    http: `${base}/announce`,
    udp: `udp://127.0.0.1:${port}/announce`,
    async scrape(infohash) {
      const query = [...infohash].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
      const answer = await (await fetch(`${base}/scrape?info_hash=${query}`)).arrayBuffer();
      const text = new TextDecoder("latin1").decode(answer);
      const figure = (key: string) => Number(new RegExp(`${key}i(\\d+)e`).exec(text)?.[1] ?? 0);
      return { seeders: figure("8:complete"), leechers: figure("10:incomplete") };
    },
    stop,
  };
}
