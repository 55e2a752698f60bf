/** The engine under test and everything that it plays: programs of this machine, each in a process of its own. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { line, stop } from "../bench/children.ts";
import { ROOT } from "../support/files.ts";
import { commandOf, DENO_HEAP_FLAGS, type Runtime } from "../support/runtimes.ts";

/** Time for a program to start, ms: three soaks may share two cores. */
const START_TIMEOUT_MS = 60_000;
/** An engine must end within this after SIGTERM, ms. */
const END_TIMEOUT_MS = 20_000;
/** Of the log only this much is kept, characters. */
const MAX_LOG_CHARS = 1_000_000;
/** Less than the films have together: pieces are removed and fetched again all the time. */
const CACHE_LIMIT = "48MiB";

/** One film: the fixture that is repeated, how often, the container, and arguments of ffmpeg. */
interface Film {
  readonly fixture: string;
  readonly passes: number;
  readonly file: string;
  readonly convert: readonly string[];
}

/** Each container takes another way through the engine; FLAC is transcoded, AVI goes through ffmpeg as a whole. */
const FILMS: readonly Film[] = [
  { fixture: "ts-188.ts", passes: 300, file: "film.ts", convert: ["-c", "copy"] },
  { fixture: "mp4-two-audio.mp4", passes: 300, file: "film.mp4", convert: ["-c", "copy"] },
  { fixture: "mkv-two-audio.mkv", passes: 300, file: "film.mkv", convert: ["-map", "0", "-c", "copy"] },
  { fixture: "mkv-cues.mkv", passes: 60, file: "flac.mkv", convert: ["-c:v", "copy", "-c:a", "flac", "-ac", "2"] },
  { fixture: "mp4-mp3.mp4", passes: 60, file: "film.avi", convert: ["-c", "copy"] },
];

/** A program that can be killed and started again at the same port under the same id. */
export interface Source {
  readonly magnet: string;
  readonly infohash: string;
  /** Kills it and starts it again; resolves when it is ready. */
  restart(pauseMs: number): Promise<void>;
  close(): Promise<void>;
}

/** The engine under test. */
export interface Subject {
  readonly url: string;
  readonly peerPort: number;
  readonly pid: number;
  readonly stateDir: string;
  readonly cacheDir: string;
  token(): string;
  log(): string;
  /** Whether it still runs. */
  isAlive(): boolean;
  /** Ends it by SIGTERM; false when it had to be killed. */
  end(): Promise<boolean>;
}

/** Everything that a soak needs. */
export interface World {
  readonly subject: Subject;
  readonly films: readonly Source[];
  readonly channels: readonly Source[];
  /** A file that the engine itself can broadcast. */
  readonly clip: string;
  /** Ends all programs and removes their files; resolves to whether the engine ended by itself. */
  close(): Promise<boolean>;
}

/** Builds films, seeders, broadcasters and the engine. `flags` go to the runtime of the engine. */
export async function openWorld(runtime: Runtime, flags: readonly string[]): Promise<World> {
  const directory = mkdtempSync(path.join(os.tmpdir(), "millrace-soak-"));
  const opened: { close(): Promise<unknown> }[] = [];
  let subject: Subject | null = null;
  const close = async () => {
    const ended = await subject?.end() ?? true;
    await Promise.all(opened.map((one) => one.close()));
    rmSync(directory, { recursive: true, force: true });
    return ended;
  };
  try {
    const media = path.join(directory, "media");
    mkdirSync(media);
    for (const film of FILMS) make(film, media);
    const films: Source[] = [];
    for (const { file } of FILMS) {
      const port = await freePort();
      films.push(await openSource(runtime, port, ["seed", "--file", path.join(media, file), ...quiet(port)]));
      opened.push(films.at(-1)!);
    }
    const channels: Source[] = [];
    const ports = [await freePort(), await freePort()];
    for (const [i, file] of ["film.ts", "film.mp4"].entries()) {
      const own = ["--state-dir", path.join(directory, `channel-${i}`), "--json", ...alone(ports[1 - i]!)];
      const source = ["broadcast", "--source", path.join(media, file), "--name", `channel ${i}`];
      channels.push(await openSource(runtime, ports[i]!, [...source, ...own, ...quiet(ports[i]!)]));
      opened.push(channels.at(-1)!);
    }
    subject = await openSubject(runtime, flags, directory, ports[0]!);
    return { subject, films, channels, clip: path.join(media, "film.ts"), close };
  } catch (error) {
    await close();
    throw error;
  }
}

function make({ fixture, passes, file, convert }: Film, media: string): void {
  const from = path.join(ROOT, "test/fixtures", fixture);
  const args = ["-v", "error", "-stream_loop", String(passes), "-i", from, ...convert, path.join(media, file)];
  const { status, error, stderr } = spawnSync("ffmpeg", args, { encoding: "utf8" });
  if (error !== undefined) throw new Error(`the soak makes its films with ffmpeg, which cannot be started: ${error}`);
  if (status !== 0) throw new Error(`ffmpeg made no ${file}: ${stderr}`);
}

/** The DHT is that of the programs of this soak; nothing else leaves the machine. */
const alone = (dhtPort: number) => ["--no-lsd", "--no-port-mapping", "--dht-bootstrap", `127.0.0.1:${dhtPort}`];

const quiet = (port: number) => ["--peer-host", "127.0.0.1", "--peer-port", String(port), "--log-level", "error"];

function program(runtime: Runtime, flags: readonly string[], args: readonly string[]): ChildProcess {
  const [command, ...before] = commandOf(runtime);
  const own = runtime === "deno" ? ["run", "-A", "--no-check", "-q", DENO_HEAP_FLAGS] : [];
  const main = path.join(ROOT, "platform", runtime, "main.ts");
  const env = { ...process.env, NO_COLOR: "1" };
  return spawn(command!, [...before, ...own, ...flags, main, ...args], { stdio: ["pipe", "pipe", "pipe"], env });
}

/** `args`: of the program, `port` among them. */
async function openSource(runtime: Runtime, port: number, args: readonly string[]): Promise<Source> {
  const begin = async () => {
    const child = program(runtime, [], args);
    child.stderr!.resume();
    const facts = JSON.parse(await line(child, "{", START_TIMEOUT_MS)) as Record<string, string>;
    child.stdout!.resume();
    return { child, infohash: facts["infohash"]! };
  };
  const first = await begin();
  let { child } = first;
  let isClosed = false;
  return {
    infohash: first.infohash,
    magnet: `magnet:?xt=urn:btih:${first.infohash}&x.pe=127.0.0.1:${port}`,
    async restart(pauseMs) {
      await stop(child);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      if (isClosed) return;
      child = (await begin()).child;
      if (isClosed) await stop(child);
    },
    async close() {
      isClosed = true;
      await stop(child);
    },
  };
}

async function openSubject(
  runtime: Runtime,
  flags: readonly string[],
  directory: string,
  dhtPort: number,
): Promise<Subject> {
  const [stateDir, cacheDir] = [path.join(directory, "state"), path.join(directory, "cache")];
  const child = program(runtime, flags, [
    ...["--state-dir", stateDir, "--cache-dir", cacheDir, "--cache-limit", CACHE_LIMIT, "--http-port", "0"],
    ...["--peer-host", "127.0.0.1", "--peer-port", "0", "--no-player-discovery", "--start-timeout", "15s"],
    ...alone(dhtPort),
  ]);
  let log = "";
  child.stderr!.on("data", (chunk) => log = (log + chunk).slice(-MAX_LOG_CHARS));
  const ready = /^ready (http:\S+) peers \S+:(\d+)$/.exec(await line(child, "ready", START_TIMEOUT_MS));
  if (ready === null) throw new Error("the engine has no peer port");
  child.stdout!.resume();
  let hasEnded = false;
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve())).then(() => void (hasEnded = true));
  return {
    url: ready[1]!.replace(/\/$/, ""),
    peerPort: Number(ready[2]),
    pid: child.pid!,
    stateDir,
    cacheDir,
    token: () => readFileSync(path.join(stateDir, "access-token"), "utf8").trim(),
    log: () => log,
    isAlive: () => !hasEnded,
    async end() {
      if (!hasEnded) process.kill(child.pid!, "SIGTERM");
      const inTime = await Promise.race([ended.then(() => true), after(END_TIMEOUT_MS).then(() => false)]);
      if (!inTime) {
        process.kill(child.pid!, "SIGKILL");
        await ended;
      }
      return inTime;
    },
  };
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}

/** A port that nobody used a moment ago. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as net.AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
