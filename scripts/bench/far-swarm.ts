/** libtorrent seeders behind slow links, to measure the waits of players. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createTransportFile, hashPieces } from "../../src/metainfo/create.ts";
import { deadline, line, start, stop } from "./children.ts";
import { findLibtorrent } from "./contenders.ts";
import { track } from "./tracker.ts";
import { type Link, openLink } from "./wan.ts";

const MIB = 1 << 20;
/** Default number of seeders. */
export const SEEDERS = 4;
/** Their default links: 50 ms round trip, 20 Mbit/s. */
export const LINK = { delayMs: 25, bytesPerS: 20e6 / 8 };
/** How long a child may take to report that it is running, ms. */
export const START_TIMEOUT_MS = 30_000;

/** Settings of a swarm that differ from the defaults. */
export interface SwarmOptions {
  /** Of each link. */
  readonly bytesPerS?: number;
  readonly seeders?: number;
  readonly pieceLengthBytes?: number;
}

/** Seeders of one clip behind slow links, and the torrent that leads to them. */
export class Swarm {
  readonly torrent: string;
  readonly sizeBytes: number;
  readonly #links: Link[];
  readonly #ends: (() => unknown)[];

  private constructor(torrent: string, sizeBytes: number, links: Link[], ends: (() => unknown)[]) {
    this.torrent = torrent;
    this.sizeBytes = sizeBytes;
    this.#links = links;
    this.#ends = ends;
  }

  /** Seeds `clip` from `work`. Default: four seeders of 20 Mbit/s and 50 ms, pieces of 1 MiB. */
  static async open(clip: string, work: string, options: SwarmOptions = {}): Promise<Swarm> {
    const { bytesPerS = LINK.bytesPerS, seeders = SEEDERS, pieceLengthBytes = MIB } = options;
    const links: Link[] = [];
    const tracker = await track(() => links.map((link) => link.port));
    const data = readFileSync(clip);
    const pieceHashes = await hashPieces(
      data.length,
      pieceLengthBytes,
      (at, n) => Promise.resolve(data.subarray(at, at + n)),
    );
    const contents = { name: path.basename(clip), sizeBytes: data.length, pieceLengthBytes, pieceHashes };
    const ends: (() => unknown)[] = [() => tracker.close()];
    const torrent = path.join(work, "stream.torrent");
    const seeded = path.join(work, "seeded.torrent");
    writeFileSync(torrent, (await createTransportFile({ ...contents, trackers: [[tracker.url]] })).bytes);
    const libtorrent = findLibtorrent()!;
    for (let i = 0; i < seeders; i++) {
      // A separate tracker: the seeders must not learn of each other, and they reject peers until they have announced.
      const alone = await track(() => []);
      writeFileSync(seeded, (await createTransportFile({ ...contents, trackers: [[alone.url]] })).bytes);
      const seeder = start(libtorrent("seed", seeded, path.dirname(clip)));
      ends.push(() => alone.close(), () => stop(seeder));
      const port = Number((await line(seeder, "READY", START_TIMEOUT_MS)).split(" ")[1]);
      await Promise.race([alone.announced, deadline(START_TIMEOUT_MS, "a seeder's announce")]);
      const link = await openLink(port, { ...LINK, bytesPerS });
      links.push(link);
      ends.push(() => link.close());
    }
    return new Swarm(torrent, data.length, links, ends);
  }

  /** Makes one of several seeders stop sending. */
  freezeOne(): void {
    this.#links[1]!.freeze();
  }

  /** Ends seeders, links and tracker. */
  async close(): Promise<void> {
    for (const end of this.#ends.reverse()) await end();
  }
}
