/** `serve`: an engine behind an HTTP server until a signal arrives. */
import os from "node:os";
import type { Config } from "../src/config.ts";
import { createEngine, type Engine, type EngineOptions } from "../src/engine.ts";
import { openClient } from "../src/database/open-client.ts";
import { describeError, hasCode, MillraceError } from "../src/errors.ts";
import type { HttpServer, Ports, RequestInfo, SocketAddress } from "../src/ports.ts";
import { chooseDirectories, type Directories, removeLeftovers, requirePrivate } from "./directories.ts";
import { lockDirectory } from "./directory-lock.ts";
import { absolute } from "./peers-only.ts";
import { copyLibrary } from "./shared/native-library.ts";
import { formatAddress } from "./shared/os-error.ts";
import { warmUp } from "./warm-up/warm-up.ts";

/** Time that running responses get when the program is asked to stop, ms; the rest of 3 s is for telling trackers. */
const RESPONSE_GRACE_MS = 1500;

/** After this long the program ends even if something still hangs, ms. */
const STOP_DEADLINE_MS = 2800;

/** What the listeners of fronts get together of the places for connections that the engine's own port has. */
const FRONTS_SHARE = 0.5;

/** A serving engine. */
export interface Serving {
  /** `http://host:port`, as clients on this machine reach it. */
  readonly baseUrl: string;
  /** Fronts with a listener of their own, each as `baseUrl`. */
  readonly fronts: Readonly<Record<string, string>>;
  /** `host:port` for peers; null when none can connect. */
  readonly peers: string | null;
  /** Ends everything within 3 s. */
  stop(): Promise<void>;
}

/** Says at the start what could not be kept later. Loads a library only where the runtime has none. */
async function warnWithoutDatabase({ sqlite, log }: Ports): Promise<void> {
  if (sqlite) return;
  try {
    (await openClient(null, { kind: "memory" })).close();
  } catch (error) {
    log.log("warn", (error as Error).message);
  }
}

/** Starts engine and server. Rejects with a MillraceError whose message is one line for the user. */
export async function startServing(config: Config, ports: Ports): Promise<Serving> {
  const directories = chooseDirectories(config);
  await requirePrivate(ports, directories.stateDir, "state-dir");
  if (config.cache === "disk") await requirePrivate(ports, directories.cacheDir, "cache-dir");
  const release = await lockDirectories(config, directories);
  await removeLeftovers(ports.files, directories.stateDir);
  if (!ports.sqlite) await copyLibrary(directories.stateDir, ports.log);
  if (!config.databaseUrl) await warnWithoutDatabase(ports);
  let engine: Engine | null = null;
  const servers: HttpServer[] = [];
  let server: HttpServer;
  const fronts: Record<string, string> = {};
  try {
    engine = await createEngine(ports, engineOptions(config, directories));
    servers.push(server = await listen(config, ports, engine));
    const own = config.fronts.filter(({ port }) => port !== null);
    for (const front of own) {
      const listener = await listen(config, ports, engine, { ...front, share: FRONTS_SHARE / own.length });
      servers.push(listener);
      fronts[front.name] = `http://${reachable(listener.address)}`;
      ports.log.log("info", "a front listens", { front: front.name, url: fronts[front.name] });
    }
  } catch (error) {
    await Promise.all(servers.map((one) => one.close(0)));
    await engine?.close();
    release();
    throw error;
  }
  engine.servedAt(server.address);
  const peers = engine.peerAddress;
  const baseUrl = `http://${reachable(server.address)}`;
  void warmUp(baseUrl, ports.clock);
  return {
    baseUrl,
    fronts,
    peers: peers === null ? null : reachable(peers),
    stop: () => stop(servers, engine).finally(release),
  };
}

/** Locks the directories: two engines would overwrite each other's pieces and remove each other's files as leftovers. */
async function lockDirectories({ cache }: Config, { stateDir, cacheDir }: Directories): Promise<() => void> {
  const releases: (() => void)[] = [];
  const release = () => releases.forEach((unlock) => unlock());
  const directories = new Map([[stateDir, "state-dir"]]);
  if (cache === "disk" && cacheDir !== stateDir) directories.set(cacheDir, "cache-dir");
  try {
    for (const [directory, flag] of directories) {
      const taken = `--${flag}: another engine uses ${directory}: end it first, or name another directory`;
      releases.push(await lockDirectory(directory, taken));
    }
  } catch (error) {
    release();
    throw error;
  }
  return release;
}

/** The configuration as options of the engine. */
function engineOptions(config: Config, directories: Directories): EngineOptions {
  const { dhtBootstrap, fronts, strmDir, peerHost, ...rest } = config;
  const names = [...new Set(fronts.map(({ name }) => name))];
  return {
    ...rest,
    fronts: names,
    strmDir: strmDir === null ? null : absolute(strmDir),
    ...directories,
    deviceName: os.hostname(),
    ...(peerHost !== null && { peerHost }),
    ...(dhtBootstrap.length > 0 && { dhtBootstrap }),
  };
}

/** Listens at the port of the engine, or of a front. */
async function listen(
  config: Config,
  ports: Ports,
  engine: Engine,
  front?: { readonly name: string; readonly port: number | null; readonly share: number },
): Promise<HttpServer> {
  const port = front?.port ?? config.httpPort;
  const answer = (request: Request, info: RequestInfo) =>
    engine.fetch(request, front === undefined ? info : { ...info, front: front.name });
  const serve = (host: string) => ports.http.serve({ host, port }, answer, { share: front?.share ?? 1 });
  if (!config.bindAll) return await serve(config.httpHost);
  try {
    // On systems with both, "::" also accepts IPv4.
    return await serve("::");
  } catch (error) {
    if (hasCode(error, "conflict")) throw error;
    return await serve("0.0.0.0");
  }
}

/** The address by which this machine reaches the listener: a wildcard also listens on loopback. */
export function reachable({ host, port }: SocketAddress): string {
  return formatAddress({ host: host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host, port });
}

async function stop(servers: readonly HttpServer[], engine: Engine): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<void>((resolve) => timer = setTimeout(resolve, STOP_DEADLINE_MS));
  const ended = Promise.allSettled([...servers.map((server) => server.close(RESPONSE_GRACE_MS)), engine.close()]);
  await Promise.race([ended, deadline]);
  clearTimeout(timer);
}

/** The line printed when the engine is ready. */
export function readyLine({ baseUrl, peers }: Serving, format: Config["logFormat"]): string {
  if (format === "json") return JSON.stringify({ event: "ready", http: baseUrl, peers });
  return `ready ${baseUrl} peers ${peers ?? "none"}`;
}

/** One line that says why the program cannot start; null when `error` is a fault of the program itself. */
export function startError(error: unknown): string | null {
  if (!(error instanceof MillraceError)) return null;
  return `millrace: ${
    describeError(error).split(/[\r\n]/).map((line) => line.trim()).filter((line) => line !== "").join(" ")
  }`;
}
