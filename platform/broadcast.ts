/** `broadcast`: sends a source to a live swarm until the source ends or a signal arrives. No HTTP, only the peer port. */
import process from "node:process";
import type { Config } from "../src/config.ts";
import type { Engine } from "../src/engine.ts";
import { createEgress } from "../src/engine/egress.ts";
import { hasCode, MillraceError } from "../src/errors.ts";
import type { BroadcastStatus } from "../src/live/broadcast/broadcast-types.ts";
import type { LiveInput } from "../src/live/broadcast/input.ts";
import type { FilePort, Ports } from "../src/ports.ts";
import { type OpenedSource, openSource } from "../src/inputs/open-source.ts";
import { broadcastFileName } from "../src/inputs/broadcast-name.ts";
import { contentId } from "../src/metainfo/content-id.ts";
import { parseLiveTransportFile } from "../src/metainfo/live.ts";
import { lockDirectory } from "./directory-lock.ts";
import { chooseDirectories, requirePrivate } from "./directories.ts";
import { absolute, inTime, peersOnly, untilStopped, withEngine } from "./peers-only.ts";
import { reachable } from "./serve.ts";
import { webReadable } from "./shared/node-streams.ts";
import { StatusLine } from "./status-line.ts";

/** Time to send viewers the last piece before leaving the swarm, ms. */
const LAST_PIECE_MS = 1000;

/** The first line of `broadcast --json`, with `event` "broadcast". */
export interface BroadcastFacts {
  /** Title. */
  readonly name: string;
  /** Description of the source that may appear in logs, without secrets. */
  readonly source: string;
  /** 40 hexadecimal characters. */
  readonly content_id: string;
  /** 40 hexadecimal characters. */
  readonly infohash: string;
  readonly magnet: string;
  /** Absolute path. */
  readonly transport_file: string;
  /** Bytes per second. */
  readonly bitrate: number;
  /** `host:port` on this machine; null when nobody can connect. */
  readonly peers: string | null;
}

/** Runs a broadcast; returns the exit code. Rejects with one clear line about what the user has to correct. */
export async function runBroadcast(config: Config, ports: Ports, stopped: Promise<void>): Promise<number> {
  const { source, name } = config;
  if (source === null) throw new MillraceError("config", "broadcast needs --source");
  if (name === null) throw new MillraceError("config", "broadcast needs --name");
  const { stateDir } = chooseDirectories(config);
  const publishDir = config.publishDir === null ? `${stateDir}/broadcasts` : absolute(config.publishDir);
  const fileName = await broadcastFileName(name);
  const directory = `${publishDir}/${fileName}`;
  if (config.publishDir === null) await requirePrivate(ports, stateDir, "state-dir");
  await requirePrivate(ports, directory, config.publishDir === null ? "state-dir" : "publish-dir");
  const release = await lockDirectory(
    directory,
    `another broadcast runs in ${directory}: end it first, or use another name`,
  );
  try {
    return await broadcastUntil(stopped, config, ports, { source, name, directory, publishDir, fileName });
  } finally {
    release();
  }
}

interface Place {
  readonly source: string;
  readonly name: string;
  /** Directory of this broadcast only. */
  readonly directory: string;
  readonly publishDir: string;
  readonly fileName: string;
}

async function broadcastUntil(stopped: Promise<void>, config: Config, ports: Ports, place: Place): Promise<number> {
  const { source, directory } = place;
  return await untilStopped(stopped, async (signal) => {
    const { ports: throughProxy, localPorts } = createEgress(ports, config);
    // Datagrams are received in the local network.
    const opened = await openSource({ ...throughProxy, udp: localPorts.udp }, source, {
      once: config.once,
      stdin: () => webReadable(process.stdin),
      resolvePath: absolute,
      signal,
    });
    if (config.private && config.trackers.length === 0) {
      ports.log.log("warn", "without --tracker a private broadcast is found only by peers that are given its address");
    }
    // The trackers of the broadcast are in its transport file.
    const options = { ...peersOnly(config, `${directory}/node`), trackers: [] };
    await withEngine(ports, options, (engine) => send({ engine, opened, config, ports, place, stopped, signal }));
  });
}

/** What `send` needs. */
interface Sending {
  readonly engine: Engine;
  readonly opened: OpenedSource;
  readonly config: Config;
  readonly ports: Ports;
  readonly place: Place;
  readonly stopped: Promise<void>;
  readonly signal: AbortSignal;
}

async function send({ engine, opened, config, ports, place, stopped, signal }: Sending): Promise<void> {
  const { name, directory, publishDir, fileName } = place;
  const { input, end } = endable(opened.input);
  const figures = () => ({ ...describe(broadcast.status()), lost_packets: opened.lostPackets() });
  const line = new StatusLine(config.json, process.stdout, figures, ports.log);
  if (opened.isAwaited) {
    // Its sender has to be started now, and whoever broadcast under this name before knows the id by which viewers find it.
    const content_id = await keptContentId(ports.files, directory);
    line.tell("waiting", { waiting_at: opened.description, content_id });
  }
  const known = config.bitrateBytesPerSecond ?? (await isNew(ports.files, directory) ? opened.bytesPerS : null);
  const broadcast = await engine.broadcast({
    input,
    name: config.title ?? name,
    directory,
    ...(known === null ? {} : { bytesPerS: Math.max(1, Math.round(known)) }),
    ...(config.pieceLengthBytes === null ? {} : { pieceLengthBytes: config.pieceLengthBytes }),
    windowS: Math.round(config.liveWindowMs / 1000),
    trackers: config.trackers.map((tracker) => [tracker]),
    isPrivate: config.private,
    uploadLimitBytesPerSecond: config.uploadLimitBytesPerSecond,
    signal,
  });
  const transportFile = `${publishDir}/${fileName}.torrent`;
  // Readable by all users: a web server may serve it.
  await ports.files.writeFile(transportFile, broadcast.transportFile, { mode: 0o644 });
  const { peerAddress } = engine;
  const facts: BroadcastFacts = {
    name: broadcast.metainfo.name,
    source: opened.description,
    content_id: broadcast.contentId,
    infohash: broadcast.metainfo.infohashHex,
    magnet: broadcast.magnet,
    transport_file: transportFile,
    bitrate: broadcast.metainfo.bytesPerS,
    peers: peerAddress === null ? null : reachable(peerAddress),
  };
  line.begin("broadcast", { ...facts });
  try {
    await Promise.race([broadcast.done, stopped]);
    // After a signal the stream ends in order, as if the source had ended: viewers learn that nothing more comes.
    end();
    // The source may hang, for example on a dead drive.
    await inTime(broadcast.done);
    if (broadcast.status().peers > 0) await new Promise((resolve) => setTimeout(resolve, LAST_PIECE_MS));
  } finally {
    line.end({ head: broadcast.status().headSeq });
    await broadcast.close();
  }
}

/** `input` with a function that ends it. */
function endable(input: LiveInput): { input: LiveInput; end(): void } {
  const events = input[Symbol.asyncIterator]();
  return { input: { [Symbol.asyncIterator]: () => events }, end: () => void events.return?.() };
}

/** The content id under which this broadcast ran before; null: it is new. */
async function keptContentId(files: FilePort, directory: string): Promise<string | null> {
  if (await isNew(files, directory)) return null;
  return await contentId(await parseLiveTransportFile(await files.readFile(`${directory}/broadcast.torrent`)));
}

async function isNew(files: FilePort, directory: string): Promise<boolean> {
  try {
    await files.info(`${directory}/broadcast.torrent`);
    return false;
  } catch (error) {
    if (hasCode(error, "not_found")) return true;
    throw error;
  }
}

/** Figures of a broadcast: bytes per second, and counts. */
function describe(status: BroadcastStatus) {
  return {
    bitrate: status.inputBytesPerSecond === null ? null : Math.round(status.inputBytesPerSecond),
    peers: status.peers,
    upload: Math.round(status.uploadBytesPerSecond),
    uploaded: status.uploadedBytes,
    head: status.headSeq,
    dropped: status.droppedBytes,
    lost: status.lost,
    message: status.message,
  };
}
