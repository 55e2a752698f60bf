/**
 * What a viewer meets in a bad swarm: eight peers of 1 to 4 Mbit/s and 80 to 250 ms, of which three never unchoke and one
 * forges blocks; the four others bring 1.3 × the bitrate together. They are found by a magnet without trackers, in a DHT
 * of 50 nodes half of which never answer. Each round draws other links; all contenders get the same ones.
 *
 *   node scripts/bench/bad-swarm.ts [rounds=20] [clip=ts] [names=libtorrent,file,ts,hls] [contestant.mjs]
 *
 * `rounds` may be a range such as 11-20: each number draws its own links.
 *
 * First picture: from adding the magnet until ffmpeg has decoded a frame. Then a player of the clip's bitrate plays for
 * 12 s, then it seeks ten times, a second apart. First pictures are measured one after another; meanwhile the players of
 * the round before still play and seek.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { commandOf } from "../support/runtimes.ts";
import { createTransportFile, hashPieces } from "../../src/metainfo/create.ts";
import { seededRandom } from "../../test/simulation/event-queue.ts";
import { type BadPeer, openBadPeer, type Vice } from "./bad-peers.ts";
import { deadline, line, start, stop } from "./children.ts";
import { bundle, type Contender, findLibtorrent, streamers } from "./contenders.ts";
import { DhtNodes } from "./dht-nodes.ts";
import { START_TIMEOUT_MS } from "./far-swarm.ts";
import { STAGES } from "./milestones.ts";
import { fresh, mediaUrls, read, Serving, within } from "./serving.ts";
import { makeClips } from "./stream.ts";
import { track } from "./tracker.ts";
import { openLink } from "./wan.ts";

const CLIP_SECONDS = 60;
/** What a torrent of this size usually has. */
const PIECE_BYTES = 256 * 1024;
const GOOD = 4;
const VICES: readonly Vice[] = ["deaf", "mute", "deaf", "liar"];
const MBIT = 125_000;
/** Of all good peers together, as a multiple of the bitrate. */
const SUPPLY = 1.3;
/** A program has run for this long when somebody opens a stream. */
const SETTLE_MS = 3000;
const PLAY_S = 12;
/** The player starts with this much media. */
const BUFFER_S = 1;
const SEEKS = 10;
const SEEK_EVERY_MS = 1000;
/** Somebody who does not finish a step within this fails, ms. */
const STEP_MS = 30_000;
/** Rounds whose players may still play and seek while the next one starts. */
const BESIDE = 1;

interface LinkProfile {
  readonly bytesPerS: number;
  readonly rttMs: number;
}

/** The measurements of one contender. */
interface Figures {
  readonly pictureS: number[];
  readonly seekS: number[];
  readonly floorS: number[];
  /** For each stage of the start the times at which it was reached, s. */
  readonly stagesS: Map<string, number[]>;
  playedS: number;
  stalledS: number;
  readonly failures: string[];
}

/** Links of one round, those of the good peers first. */
function drawLinks(seed: number, bitrateBytesPerS: number): LinkProfile[] {
  const random = seededRandom(seed);
  for (;;) {
    const links = Array.from({ length: GOOD + VICES.length }, () => ({
      bytesPerS: (1 + 3 * random()) * MBIT,
      rttMs: 80 + 170 * random(),
    }));
    const good = links.slice(0, GOOD).reduce((sum, { bytesPerS }) => sum + bytesPerS, 0);
    const factor = SUPPLY * bitrateBytesPerS / good;
    const scaled = links.map((link, i) => i < GOOD ? { ...link, bytesPerS: link.bytesPerS * factor } : link);
    if (scaled.every(({ bytesPerS }) => bytesPerS >= MBIT && bytesPerS <= 4 * MBIT)) return scaled;
  }
}

/** The least time in which the good peers can deliver a piece that is asked for now, s. */
function pieceFloorS(links: readonly LinkProfile[]): number {
  const by = (ms: number) =>
    links.reduce((sum, { bytesPerS, rttMs }) => sum + bytesPerS * Math.max(0, ms - rttMs) / 1000, 0);
  let ms = 0;
  while (by(ms) < PIECE_BYTES) ms++;
  return ms / 1000;
}

/** Seeders and bad peers of one clip, for all rounds. */
class Peers {
  readonly infohash: string;
  readonly sizeBytes: number;
  readonly #ports: readonly number[];
  readonly #ends: readonly (() => unknown)[];

  private constructor(infohash: string, sizeBytes: number, ports: readonly number[], ends: readonly (() => unknown)[]) {
    this.infohash = infohash;
    this.sizeBytes = sizeBytes;
    this.#ports = ports;
    this.#ends = ends;
  }

  static async open(clip: string, work: string): Promise<Peers> {
    const data = readFileSync(clip);
    const pieceHashes = await hashPieces(
      data.length,
      PIECE_BYTES,
      (at, n) => Promise.resolve(data.subarray(at, at + n)),
    );
    const contents = { name: path.basename(clip), sizeBytes: data.length, pieceLengthBytes: PIECE_BYTES, pieceHashes };
    const ends: (() => unknown)[] = [];
    const ports: number[] = [];
    let infohash = "";
    for (let i = 0; i < GOOD; i++) {
      // libtorrent refuses peers until it has announced; the tracker is no part of the infohash.
      const alone = await track(() => []);
      const seeded = path.join(work, "seeded.torrent");
      const made = await createTransportFile({ ...contents, trackers: [[alone.url]] });
      infohash = Buffer.from(made.metainfo.infohash).toString("hex");
      writeFileSync(seeded, made.bytes);
      const seeder = start(findLibtorrent()!("seed", seeded, path.dirname(clip)));
      ends.push(() => alone.close(), () => stop(seeder));
      ports.push(Number((await line(seeder, "READY", START_TIMEOUT_MS)).split(" ")[1]));
      await Promise.race([alone.announced, deadline(START_TIMEOUT_MS, "a seeder's announce")]);
    }
    for (const vice of VICES) {
      const peer: BadPeer = await openBadPeer(vice, { infohash, clip, pieceLengthBytes: PIECE_BYTES });
      ports.push(peer.port);
      ends.push(() => peer.close());
    }
    return new Peers(infohash, data.length, ports, ends);
  }

  /** Links to all of them, and a DHT that leads there. */
  async reach(links: readonly LinkProfile[]): Promise<{ entry: string; magnet: string; close(): void }> {
    // An address for each: who lies is banned with all at its address.
    const hosts = this.#ports.map((_, i) => `127.0.0.${10 + i}`);
    const open = await Promise.all(this.#ports.map((port, i) => {
      const { bytesPerS, rttMs } = links[i]!;
      return openLink(port, { delayMs: rttMs / 2, bytesPerS, host: hosts[i]! });
    }));
    const addresses = open.map(({ port }, i) => ({ host: hosts[i]!, port }));
    const dht = await DhtNodes.open(this.infohash, addresses, () => 80 + 170 * Math.random());
    const magnet = `magnet:?xt=urn:btih:${this.infohash}`;
    return {
      entry: dht.entry,
      magnet,
      close() {
        dht.close();
        for (const link of open) link.close();
      },
    };
  }

  async close(): Promise<void> {
    for (const end of [...this.#ends].reverse()) await end();
  }
}

async function firstPicture(serving: Serving): Promise<number> {
  const ffmpeg = start([
    // A second of media says enough about the streams; by default ffmpeg reads 5 MB of a transport stream.
    ...["ffmpeg", "-v", "error", "-nostdin", "-threads", "1", "-probesize", "500000", "-analyzeduration", "1000000"],
    ...["-i", serving.url, "-map", "0:v:0", "-frames:v", "1", "-f", "null", "-"],
  ]);
  const code = await within("first picture", new Promise((resolve) => ffmpeg.once("exit", resolve)), STEP_MS);
  if (code !== 0) throw new Error("no picture");
  return (performance.now() - serving.beganMs) / 1000;
}

/** Plays at the bitrate from the start: seconds played and stalled. */
async function play(serving: Serving, bytesPerS: number): Promise<{ playedS: number; stalledS: number }> {
  let received = 0;
  let startMs = 0;
  let stalledMs = 0;
  const take = (bytes: number) => {
    received += bytes;
    const now = performance.now();
    if (startMs === 0 && received >= BUFFER_S * bytesPerS) startMs = now;
    if (startMs === 0) return true;
    // The media before this chunk lasted until then; anything beyond that was waiting.
    const playedToMs = (received - bytes) / bytesPerS * 1000;
    stalledMs += Math.max(0, now - startMs - stalledMs - playedToMs);
    return received < PLAY_S * bytesPerS;
  };
  for (const url of await mediaUrls(serving.url)) {
    if (received < PLAY_S * bytesPerS) await within("playing", read(url, 0, fresh(), take), STEP_MS);
  }
  return { playedS: received / bytesPerS, stalledS: stalledMs / 1000 };
}

/** Seconds to the first byte of each of ten seeks, a second apart, to places never read before. */
async function seek(serving: Serving, sizeBytes: number, random: () => number): Promise<number[]> {
  const urls = await mediaUrls(serving.url);
  const parts = Array.from({ length: SEEKS }, (_, i) => 0.5 + 0.048 * i).sort(() => random() - 0.5);
  const seconds: number[] = [];
  for (const part of parts) {
    const began = performance.now();
    let firstMs = 0;
    const first = urls.length > 1 ? Math.floor(urls.length * part) : 0;
    for (const url of urls.slice(first, first + 2)) {
      if (firstMs > 0 && performance.now() - began >= SEEK_EVERY_MS) break;
      const offset = urls.length > 1 ? 0 : Math.floor(sizeBytes * part);
      const end = new AbortController();
      const pause = setTimeout(() => end.abort(), SEEK_EVERY_MS);
      await within(
        "a seek",
        read(url, offset, fresh(), () => {
          firstMs ||= performance.now();
          return !end.signal.aborted;
        }),
        STEP_MS,
      );
      clearTimeout(pause);
    }
    seconds.push((firstMs - began) / 1000);
    const left = SEEK_EVERY_MS - (performance.now() - began);
    if (left > 0) await new Promise((resolve) => setTimeout(resolve, left));
  }
  return seconds;
}

const OUTPUTS = ["file", "ts", "hls"] as const;

/** libtorrent with the file, and the outputs of `ours`; each told its DHT node. */
function contenders(ours: string, names: readonly string[]): ((entry: string) => Contender)[] {
  const withNode = (who: Contender, name: string, ...env: string[]) => (entry: string) => ({
    name,
    command: (source: string, directory: string) => [
      ...["env", `DHT_NODE=${entry}`, ...env],
      ...who.command(source, directory),
    ],
  });
  const rival = streamers(ours).find(({ name }) => name === "libtorrent")!;
  const own: Contender = {
    name: "millrace",
    command: (source, directory) => [...commandOf("node"), ours, "stream", source, directory],
  };
  const all = [
    withNode(rival, "libtorrent"),
    ...OUTPUTS.map((output) => withNode(own, output, `OUTPUT=${output}`, "STAGES=1")),
  ];
  return all.filter((make) => names.includes(make("").name));
}

const percentile = (values: readonly number[], share: number): number =>
  [...values].sort((a, b) => a - b)[Math.max(0, Math.ceil(values.length * share) - 1)] ?? NaN;

/** Measures all rounds; returns Markdown. */
export async function badSwarm(
  work: string,
  ours: string,
  { first, last }: { first: number; last: number },
  clip: string,
  names: readonly string[],
): Promise<string[]> {
  const peers = await Peers.open(clip, work);
  const bitrate = peers.sizeBytes / CLIP_SECONDS;
  const results = new Map<string, Figures>();
  const playing: Promise<unknown>[] = [];
  try {
    for (let round = first; round <= last; round++) {
      const links = drawLinks(round, bitrate);
      const floorS = pieceFloorS(links.slice(0, GOOD));
      const settled = new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
      const rest: Promise<void>[] = [];
      let turn: Promise<unknown> = settled;
      await Promise.all(
        contenders(ours, names).map(async (make, at) => {
          const swarm = await peers.reach(links);
          const who = make(swarm.entry);
          const figures: Figures = results.get(who.name) ??
            { pictureS: [], seekS: [], floorS: [], stagesS: new Map(), playedS: 0, stalledS: 0, failures: [] };
          results.set(who.name, figures);
          const into = path.join(work, `${round}-${at}`);
          mkdirSync(into);
          const before = turn;
          let done = () => {};
          turn = new Promise<void>((resolve) => done = resolve);
          let serving: Serving | null = null;
          const finish = async () => {
            await serving?.close();
            swarm.close();
            rmSync(into, { recursive: true, force: true });
          };
          try {
            serving = await Serving.open(who, { torrent: swarm.magnet }, into, () => Promise.all([before, settled]));
            figures.pictureS.push(await firstPicture(serving));
            figures.floorS.push(floorS);
            for (const [stage, ms] of serving.stages) {
              figures.stagesS.set(stage, [...figures.stagesS.get(stage) ?? [], ms / 1000]);
            }
          } catch (error) {
            figures.failures.push(String(error));
            done();
            return await finish();
          }
          done();
          rest.push((async () => {
            try {
              const { playedS, stalledS } = await play(serving, bitrate);
              figures.playedS += playedS;
              figures.stalledS += stalledS;
              figures.seekS.push(...await seek(serving, peers.sizeBytes, seededRandom(round)));
            } catch (error) {
              figures.failures.push(String(error));
            } finally {
              await finish();
            }
          })());
        }),
      );
      playing.push(Promise.all(rest));
      await Promise.all(playing.slice(0, -BESIDE));
    }
    await Promise.all(playing);
  } finally {
    await peers.close();
  }
  const s = (value: number) => value.toFixed(2);
  const median = (values: readonly number[]) => s(percentile(values, 0.5));
  const p95 = (values: readonly number[]) => s(percentile(values, 0.95));
  return [
    `## A bad swarm: rounds ${first} to ${last}, ${path.basename(clip)} of ${(bitrate * 8 / 1e6).toFixed(1)} Mbit/s`,
    "",
    "| | first picture, s: median · p95 · worst | rebuffering | seek, s: median · p95 · worst | failures |",
    "| --- | --- | --- | --- | --- |",
    ...[...results].map(([name, f]) =>
      `| ${name} | ${median(f.pictureS)} · ${p95(f.pictureS)} · ${s(Math.max(...f.pictureS))} | ${
        (100 * f.stalledS / (f.playedS + f.stalledS)).toFixed(2)
      } % | ${median(f.seekS)} · ${p95(f.seekS)} · ${s(Math.max(...f.seekS))} | ${f.failures.join("; ") || "–"} |`
    ),
    "",
    "Stages of the start, s: median · p95",
    "",
    `| | ${STAGES.join(" | ")} |`,
    `| --- |${" --- |".repeat(STAGES.length)}`,
    ...[...results].filter(([, { stagesS }]) => stagesS.size > 1).map(([name, { stagesS }]) => {
      const cells = STAGES.map((stage) => `${median(stagesS.get(stage) ?? [])} · ${p95(stagesS.get(stage) ?? [])}`);
      return `| ${name} | ${cells.join(" | ")} |`;
    }),
    "",
    `Least time for one piece over these links: median ${median([...results.values()][0]!.floorS)}, p95 ${
      p95([...results.values()][0]!.floorS)
    } s.`,
  ];
}

const [rounds = "20", kind = "ts", names = "libtorrent,file,ts,hls", built] = process.argv.slice(2);
const work = mkdtempSync(path.join(process.env["BENCH_DIR"] ?? os.tmpdir(), "bad-swarm-"));
try {
  const ours = built ?? await bundle("scripts/bench/contestant.ts", work);
  const clip = makeClips(work).find((name) => path.extname(name) === `.${kind}`)!;
  const [first, last] = rounds.includes("-") ? rounds.split("-").map(Number) : [1, Number(rounds)];
  console.log((await badSwarm(work, ours, { first: first!, last: last! }, clip, names.split(","))).join("\n"));
} finally {
  rmSync(work, { recursive: true, force: true });
}
