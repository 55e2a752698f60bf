/** Other people's BitTorrent clients, as seeders and fetchers on loopback. A missing one fails with its name. */
import { connect } from "node:net";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { temporaryDirectory } from "../../support/engine.ts";
import { type Program, start } from "../../support/process.ts";
import { freePort } from "../../support/tracker.ts";
import { until } from "../../support/until.ts";
import type { Content } from "./content.ts";

/** Where all clients listen. */
export const LOOPBACK = "127.0.0.1";
const PEER_PY = fileURLToPath(new URL("./libtorrent_peer.py", import.meta.url));
/** The binding of Debian's package belongs to this interpreter. */
const PYTHON = "/usr/bin/python3";

/** A client with one torrent. */
export interface Client {
  /** `host:port` that it accepts peers on. */
  readonly peer: string;
  readonly program: Program;
  /** Resolves when it has everything; fails when it takes longer than the tests may. */
  done(): Promise<void>;
  /** Where the pack is or will be. */
  readonly directory: string;
  stop(): Promise<void>;
}

/** What a client shall do. */
export interface ClientOptions {
  /** Default: the content's own directory to seed, a new one to fetch. */
  readonly mode: "seed" | "fetch" | "idle";
  /** Default: the transport file. */
  readonly magnet?: string;
  readonly port?: number;
  /** Only encrypted connections, RC4 for all of them. */
  readonly encrypt?: boolean;
  /** Only for libtorrent: addresses to dial, trackers, DHT, LSD, PEX, super-seeding, bytes per second. */
  readonly peers?: readonly string[];
  readonly trackers?: readonly string[];
  readonly dhtNode?: string;
  readonly lsd?: boolean;
  readonly pex?: boolean;
  readonly superSeeding?: boolean;
  /** libtorrent and transmission: uTP is on, as by default; libtorrent dials by it first. "only": no TCP (libtorrent). */
  readonly utp?: boolean | "only";
  readonly uploadLimit?: number;
  /** libtorrent and transmission. Default: 127.0.0.1. */
  readonly host?: string;
}

/** How long any client may take to get ready or to fetch everything. */
export const CLIENT_TIMEOUT_MS = 60_000;

/** Starts one of the clients. */
export type StartClient = (content: Content, options: ClientOptions) => Promise<Client>;

/** libtorrent by its Python binding. */
export const libtorrent: StartClient = async (content, options) => {
  const host = options.host ?? LOOPBACK;
  const home = await homeOf(content, options);
  const flags = [
    ...(options.peers ?? []).flatMap((peer) => ["--peer", peer]),
    ...(options.trackers ?? []).flatMap((url) => ["--tracker", url]),
    ...(options.dhtNode === undefined ? [] : ["--dht-node", options.dhtNode]),
    ...(options.lsd ? ["--lsd"] : []),
    ...(options.pex ? ["--pex"] : []),
    ...(options.encrypt ? ["--encrypt"] : []),
    ...(options.superSeeding ? ["--super-seeding"] : []),
    ...(options.utp ? ["--utp"] : []),
    ...(options.utp === "only" ? ["--no-tcp"] : []),
    ...(options.uploadLimit === undefined ? [] : ["--upload-limit", String(options.uploadLimit)]),
  ];
  const source = options.magnet ?? content.torrentPath;
  const listen = `${host}:${options.port ?? 0}`;
  const program = start(PYTHON, [PEER_PY, options.mode, source, home.path, listen, ...flags]);
  return await started(program, home, async () => {
    const [, port] = await program.line(/^READY (\d+)$/, CLIENT_TIMEOUT_MS);
    return {
      peer: `${host}:${port}`,
      done: async () => void (await program.line(/^DONE$/, CLIENT_TIMEOUT_MS)),
    };
  });
};

/** A private DHT: libtorrent nodes at `host`, with brackets around IPv6; default: loopback. */
export async function startDht(
  nodes = 3,
  host = LOOPBACK,
): Promise<{ readonly nodes: readonly string[]; stop(): Promise<void> }> {
  const program = start(PYTHON, [PEER_PY, "dht", String(nodes), host]);
  try {
    const [, ports] = await program.line(/^READY ([\d ]+)$/, CLIENT_TIMEOUT_MS);
    return { nodes: ports!.split(" ").map((port) => `${host}:${port}`), stop: () => program.stop() };
  } catch (error) {
    await program.stop();
    throw error;
  }
}

/** Makes a torrent with libtorrent: a hybrid of v1 and v2. */
export async function makeHybridTorrent(source: string, target: string): Promise<void> {
  await makeTorrent(source, target, "hybrid");
}

/** Makes a torrent with libtorrent: of version 2 alone. */
export async function makeV2Torrent(source: string, target: string, pieceBytes = 65_536): Promise<void> {
  await makeTorrent(source, target, "v2", pieceBytes);
}

async function makeTorrent(source: string, target: string, ...how: readonly (string | number)[]): Promise<void> {
  const program = start(PYTHON, [PEER_PY, "create", source, target, ...how.map(String)]);
  const timer = setTimeout(() => void program.stop(), CLIENT_TIMEOUT_MS);
  const code = await program.exited;
  clearTimeout(timer);
  if (code !== 0) throw new Error(`${PYTHON} with libtorrent made no torrent: ${program.output()}`);
}

/** transmission-daemon, controlled by its RPC. It dials no loopback address, so the other end has to dial. */
export const transmission: StartClient = async (content, options) => {
  const home = await homeOf(content, options);
  const host = options.host ?? LOOPBACK;
  const settings = await temporaryDirectory();
  const [rpcPort, peerPort] = [await freePort(), options.port ?? await freePort()];
  await writeFile(
    join(settings.path, "settings.json"),
    JSON.stringify({
      "rpc-enabled": true,
      "rpc-bind-address": LOOPBACK,
      "rpc-port": rpcPort,
      "rpc-authentication-required": false,
      "rpc-whitelist-enabled": false,
      "rpc-host-whitelist-enabled": false,
      "bind-address-ipv4": host,
      "peer-port": peerPort,
      "dht-enabled": false,
      "lpd-enabled": options.lsd ?? false,
      "pex-enabled": false,
      "utp-enabled": options.utp === true,
      "port-forwarding-enabled": false,
      "encryption": options.encrypt ? 2 : 1,
      "download-dir": home.path,
    }),
  );
  const program = start("transmission-daemon", ["-f", "-g", settings.path]);
  const call = async (method: string, args: Record<string, unknown>) => {
    const url = `http://${LOOPBACK}:${rpcPort}/transmission/rpc`;
    const body = JSON.stringify({ method, arguments: args });
    // The first answer only names the session that every call must carry.
    const refused = await fetch(url, { method: "POST", body });
    await refused.body?.cancel();
    const session = refused.headers.get("x-transmission-session-id") ?? "";
    const answer = await fetch(url, { method: "POST", body, headers: { "x-transmission-session-id": session } });
    const { result, arguments: values } = await answer.json();
    if (result !== "success") throw new Error(`transmission-daemon: ${method}: ${result}`);
    return values;
  };
  const torrent = async () => {
    const { torrents } = await call("torrent-get", { fields: ["status", "percentDone", "errorString"] });
    return torrents[0] as { status: number; percentDone: number; errorString: string };
  };
  const SEEDING = 6;
  const done = () =>
    until("transmission-daemon has everything", async () => {
      const { status, percentDone } = await torrent();
      return status === SEEDING && percentDone === 1;
    }, CLIENT_TIMEOUT_MS);
  const both = {
    path: home.path,
    remove: async () => {
      await settings.remove();
      await home.remove();
    },
  };
  return await started(program, both, async () => {
    await until("transmission-daemon answers", () => {
      if (program.child.exitCode !== null || program.child.pid === undefined) {
        throw new Error(`transmission-daemon did not start: ${program.output()}`);
      }
      return call("session-get", {}).then(() => true, () => false);
    });
    const source = options.magnet === undefined
      ? { metainfo: (await readFile(content.torrentPath)).toString("base64") }
      : { filename: options.magnet };
    await call("torrent-add", { ...source, "download-dir": home.path });
    if (options.mode === "seed") {
      await call("torrent-verify", {});
      await done();
    }
    return { peer: `${host}:${peerPort}`, done };
  });
};

/** aria2c. */
export const aria2: StartClient = async (content, options) => {
  const home = await homeOf(content, options);
  const port = options.port ?? await freePort();
  const program = start("aria2c", [
    "--no-conf",
    `--dir=${home.path}`,
    `--listen-port=${port}`,
    `--interface=${LOOPBACK}`,
    "--enable-dht=false",
    "--enable-dht6=false",
    "--enable-peer-exchange=false",
    `--bt-enable-lpd=${options.lsd ?? false}`,
    "--bt-exclude-tracker=*",
    "--file-allocation=none",
    "--summary-interval=0",
    "--console-log-level=notice",
    "--enable-color=false",
    ...(options.trackers ?? []).map((url) => `--bt-tracker=${url}`),
    ...(options.mode === "seed" ? ["--check-integrity=true", "--seed-ratio=0"] : ["--seed-time=0"]),
    options.magnet ?? content.torrentPath,
  ]);
  return await started(program, home, async () => {
    await until("aria2c listens", () => {
      if (program.child.exitCode !== null || program.child.pid === undefined) {
        throw new Error(`aria2c did not start: ${program.output()}`);
      }
      return accepts(port);
    }, CLIENT_TIMEOUT_MS);
    if (options.mode === "seed") {
      await until("aria2c checked the files", () => /Verification finished successfully/.test(program.output()));
    }
    return {
      peer: `${LOOPBACK}:${port}`,
      async done() {
        const timer = setTimeout(() => void program.stop(), CLIENT_TIMEOUT_MS);
        const code = await program.exited;
        clearTimeout(timer);
        if (code !== 0) throw new Error(`aria2c did not get everything (${code}): ${program.output().slice(-2000)}`);
      },
    };
  });
};

/** A directory of a client. */
export interface Home {
  readonly path: string;
  remove(): Promise<void>;
}

/** Where a client has the content, or puts it. */
export async function homeOf(content: Content, options: ClientOptions): Promise<Home> {
  return options.mode === "seed" ? { path: content.directory, remove: async () => {} } : await temporaryDirectory();
}

/** A client whose `ready` has resolved; what cannot start leaves nothing behind. */
export async function started(
  program: Program,
  home: Home,
  ready: () => Promise<Pick<Client, "peer" | "done">>,
): Promise<Client> {
  const stop = async () => {
    await program.stop();
    await home.remove();
  };
  try {
    return { ...(await ready()), program, directory: home.path, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, LOOPBACK);
    const end = (result: boolean) => {
      socket.destroy();
      resolve(result);
    };
    socket.once("connect", () => end(true)).once("error", () => end(false));
  });
}
