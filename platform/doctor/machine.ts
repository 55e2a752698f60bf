/** Checks of this machine: directories and their room, ffmpeg, the database. */
import { readFile, statfs } from "node:fs/promises";
import type { Config } from "../../src/config.ts";
import { openClient } from "../../src/database/open-client.ts";
import { createStore, storeLocation } from "../../src/database/store.ts";
import { hasCode, MillraceError } from "../../src/errors.ts";
import type { Ports } from "../../src/ports.ts";
import { Playlist } from "../../src/playlist/items.ts";
import { type Directories, requireWritable } from "../directories.ts";
import { type Finding, ok, trouble, warning } from "./finding.ts";

/** With less free space than this a film of an hour does not fit, bytes. */
const LITTLE_ROOM_BYTES = 2 * 2 ** 30;
/** With less free space than this pieces cannot be stored, bytes. */
const NO_ROOM_BYTES = 64 * 2 ** 20;
/** `ffmpeg -encoders` prints some 30 KB. */
const MAX_FFMPEG_BYTES = 1 << 20;

/** Whether the state directory can be used. */
export async function checkStateDirectory(
  { files }: Pick<Ports, "files">,
  { stateDir }: Directories,
): Promise<Finding> {
  return await writable(files, stateDir, "state-dir", "state directory") ?? ok("state directory", stateDir);
}

/** Whether the piece cache has a directory with enough free space. */
export async function checkCache(
  { files }: Pick<Ports, "files">,
  config: Pick<Config, "cache" | "cacheLimitBytes">,
  { cacheDir }: Directories,
): Promise<Finding> {
  if (config.cache === "ram") return ok("cache", `in memory, up to ${sizeText(config.cacheLimitBytes)}`);
  const fault = await writable(files, cacheDir, "cache-dir", "cache");
  if (fault !== null) return fault;
  const { bavail, bsize } = await statfs(cacheDir);
  const freeBytes = bavail * bsize;
  const where = `${cacheDir} has ${sizeText(freeBytes)} free`;
  const elsewhere = "make room, or name a directory on another disk with --cache-dir";
  if (freeBytes < NO_ROOM_BYTES) return trouble("cache", where, elsewhere);
  if (freeBytes < LITTLE_ROOM_BYTES) return warning("cache", `${where}, which is little for video`, elsewhere);
  return config.cacheLimitBytes > freeBytes
    ? warning(
      "cache",
      `${where}, less than its limit of ${sizeText(config.cacheLimitBytes)}`,
      `make room, or set --cache-limit below ${sizeText(freeBytes)}`,
    )
    : ok("cache", `${where}, limit ${config.cacheLimitBytes === 0 ? "none" : sizeText(config.cacheLimitBytes)}`);
}

async function writable(
  files: Ports["files"],
  directory: string,
  flag: string,
  check: string,
): Promise<Finding | null> {
  try {
    await requireWritable(files, directory, flag);
    return null;
  } catch (error) {
    return trouble(
      check,
      (error as Error).message,
      `make it writable for your user, or name another --${flag}`,
    );
  }
}

/** Whether ffmpeg is on the PATH and makes AAC. */
export async function checkFfmpeg({ processes }: Pick<Ports, "processes">, signal: AbortSignal): Promise<Finding> {
  const remedy = "install ffmpeg so that it is on the PATH; without it such sound is left out";
  const wanted = "sound that MPEG TS does not carry (Opus, FLAC, DTS …) cannot be converted to AAC";
  try {
    const [first = ""] = (await output(processes, ["-version"], signal)).split("\n");
    const version = /^ffmpeg version (\S+)/.exec(first)?.[1] ?? "of unknown version";
    const hasAac = /^ A\S+ aac /m.test(await output(processes, ["-hide_banner", "-encoders"], signal));
    return hasAac
      ? ok("ffmpeg", version)
      : warning("ffmpeg", `${version} has no AAC encoder: ${wanted}`, "install an ffmpeg with the encoder aac");
  } catch (error) {
    const why = hasCode(error, "unavailable") ? "not found" : (error as Error).message;
    return warning("ffmpeg", `${why}: ${wanted}`, remedy);
  }
}

async function output(processes: Ports["processes"], args: readonly string[], signal: AbortSignal): Promise<string> {
  const child = await processes.spawn("ffmpeg", args);
  const kill = () => child.kill("SIGKILL");
  signal.addEventListener("abort", kill, { once: true });
  try {
    let text = "";
    const decoder = new TextDecoder();
    const errors = child.stderr.pipeTo(new WritableStream()).catch(() => {});
    for await (const chunk of child.stdout as AsyncIterable<Uint8Array> & ReadableStream<Uint8Array>) {
      if (text.length < MAX_FFMPEG_BYTES) text += decoder.decode(chunk, { stream: true });
    }
    await Promise.all([errors, child.exited]);
    return text;
  } finally {
    signal.removeEventListener("abort", kill);
    kill();
  }
}

/** Bytes of unread datagrams that a source of a broadcast asks the kernel to keep: what encoders send in one burst. */
const DATAGRAM_BUFFER_BYTES = 4 * 2 ** 20;

/** Whether the kernel keeps the datagrams of `udp://` and `rtp://` sources while the engine is busy. Linux only: null elsewhere. */
export async function checkDatagrams({ runtime }: Pick<Ports, "runtime">): Promise<Finding | null> {
  if (runtime.platform !== "linux") return null;
  const largestBytes = Number(await readFile("/proc/sys/net/core/rmem_max", "utf8").catch(() => NaN));
  if (!(largestBytes < DATAGRAM_BUFFER_BYTES)) return ok("UDP sources", "the kernel keeps bursts of datagrams");
  return warning(
    "UDP sources",
    `the kernel keeps ${
      Math.round(largestBytes / 1024)
    } KiB of unread datagrams: udp:// and rtp:// sources may lose some`,
    `allow more: sysctl -w net.core.rmem_max=${DATAGRAM_BUFFER_BYTES}, and the same line in /etc/sysctl.d`,
  );
}

/** Whether playlists, accounts and settings can be read. Does not create a database. */
export async function checkDatabase(
  ports: Pick<Ports, "files" | "clock" | "log" | "sqlite">,
  config: Pick<Config, "databaseUrl" | "databaseToken">,
  { stateDir }: Directories,
): Promise<Finding> {
  const location = storeLocation({ ...config, stateDir });
  const name = location.kind === "file" ? location.path : config.databaseUrl ?? "memory";
  const store = createStore(ports, location);
  try {
    if (location.kind === "file" && !await store.mayHoldData()) {
      (await openClient(ports.sqlite ?? null, { kind: "memory" })).close();
      return ok("database", "none yet: it is made when it is first needed");
    }
    await store.read();
    return await new Playlist(store, ports.clock).isLoaded()
      ? ok("database", name)
      : trouble("database", `${name} cannot be read`, databaseRemedy(location.kind));
  } catch (error) {
    return trouble("database", `${name}: ${(error as Error).message}`, databaseRemedy(location.kind, error));
  } finally {
    await store.close();
  }
}

function databaseRemedy(kind: "file" | "server" | "memory", error?: unknown): string {
  const code = error instanceof MillraceError ? error.code : null;
  if (code === "corrupt") {
    return "start the engine: it sets the damaged file aside and begins a new one; or restore a backup";
  }
  if (code === "unavailable" && kind === "file") return "until then streams play, and nothing is kept";
  if (code === "conflict") return "it was made by a newer release: use that release, or another --state-dir";
  return kind === "server"
    ? "check --database-url and --database-token, and that the server runs"
    : "check its owner and permissions";
}

/** A size for people to read. */
function sizeText(bytes: number): string {
  return bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(1)} GiB` : `${Math.round(bytes / 2 ** 20)} MiB`;
}
