/** `relay`: a support node that passes a broadcast on until a signal arrives. */
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { Config } from "../src/config.ts";
import type { StreamSelector } from "../src/content/selector.ts";
import { MillraceError } from "../src/errors.ts";
import type { LiveSwarmStatus } from "../src/live/swarm/live-swarm-status.ts";
import type { Ports } from "../src/ports.ts";
import { chooseDirectories, requirePrivate } from "./directories.ts";
import { absolute, peersOnly, untilStopped, withEngine } from "./peers-only.ts";
import { reachable } from "./serve.ts";
import { StatusLine } from "./status-line.ts";

/** Largest transport file read, bytes: those of broadcasts are below 64 KiB. */
const MAX_FILE_BYTES = 1024 * 1024;

/** Runs the node; returns the exit code. Rejects with one clear line about what the user has to correct. */
export async function runRelay(config: Config, ports: Ports, stopped: Promise<void>): Promise<number> {
  if (config.url === null) throw new MillraceError("config", "relay needs --url");
  const selector = await selectorOf(config.url, ports);
  const { stateDir } = chooseDirectories(config);
  const directory = `${stateDir}/relay`;
  await requirePrivate(ports, stateDir, "state-dir");
  await requirePrivate(ports, directory, "state-dir");
  return await untilStopped(stopped, (signal) =>
    withEngine(ports, peersOnly(config, directory), async (engine) => {
      const relay = await engine.relay(selector, { signal });
      const line = new StatusLine(config.json, process.stdout, () => describe(relay.status()), ports.log);
      const { peerAddress } = engine;
      line.begin("relay", {
        name: relay.metainfo.name,
        content_id: relay.contentId,
        infohash: relay.metainfo.infohashHex,
        peers: peerAddress === null ? null : reachable(peerAddress),
      });
      await stopped;
      line.end({ uploaded: relay.status().uploadedBytes });
      await relay.close();
    }));
}

/** The stream that `--url` names: an id, a magnet, or a transport file by URL or path. */
async function selectorOf(stream: string, ports: Pick<Ports, "files">): Promise<StreamSelector> {
  if (/^[0-9a-f]{40}$/i.test(stream)) return { kind: "content_id", contentId: stream.toLowerCase() };
  if (/^magnet:/i.test(stream)) return { kind: "magnet", magnet: stream };
  if (/^https?:/i.test(stream)) return { kind: "url", url: stream };
  const file = absolute(stream.startsWith("file://") ? pathOf(stream) : stream);
  return { kind: "transport_file", bytes: await ports.files.readFile(file, { maxBytes: MAX_FILE_BYTES }) };
}

function pathOf(url: string): string {
  try {
    return fileURLToPath(url);
  } catch {
    throw new MillraceError("config", "--url is a file URL that names no file of this machine");
  }
}

/** Figures of a support node: bytes per second, and counts. */
function describe(status: LiveSwarmStatus) {
  return {
    bitrate: Math.round(status.downloadBytesPerSecond),
    peers: status.peers,
    upload: Math.round(status.uploadBytesPerSecond),
    uploaded: status.uploadedBytes,
    children: status.children,
    pieces: status.havePieces,
    head: null,
    lost: null,
    message: status.message,
  };
}
