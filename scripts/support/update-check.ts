/** Whether engines that run from the built files survive an update of those files while they play. */
import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { type Program, start } from "../../test/support/process.ts";
import { ROOT } from "./files.ts";

/** What the build makes again and an update replaces. Other things may lie beside it. */
const BUILT = ["millrace.mjs", "millrace.mjs.map", "libsql.node", "webrtc.mjs", "THIRD-PARTY.txt"];
const TOKEN = "0".repeat(64);
/** Deadlines: for a start on a busy machine, for the next bytes of a broadcast, for an end, ms. */
const START_MS = 60_000;
const NEXT_MS = 20_000;
const END_MS = 10_000;

/** A `demo --live` of its own directories, and a player of its broadcast. */
class Playing {
  readonly #program: Program;
  readonly #http: string;
  readonly #player: ReadableStreamDefaultReader<Uint8Array>;
  #hasEnded = false;

  static async begin(command: string, bundle: string): Promise<Playing> {
    const [name, ...before] = command.split(" ");
    const program = start(name!, [
      ...[...before, bundle, "demo", "--live", "--access-token", TOKEN],
      ...["--http-port", "0", "--peer-port", "0", "--peer-host", "127.0.0.1"],
    ], { cwd: "/" });
    try {
      const http = (await program.line(/^ready (\S+)/, START_MS))[1]!;
      const url = (await program.line(/^MPEG TS: (\S+)/, START_MS))[1]!;
      const { body } = await fetch(url, { signal: AbortSignal.timeout(START_MS * 5) });
      const playing = new Playing(program, http, body!.getReader());
      await playing.check();
      return playing;
    } catch (error) {
      await program.stop();
      throw error;
    }
  }

  private constructor(program: Program, http: string, player: ReadableStreamDefaultReader<Uint8Array>) {
    this.#program = program;
    this.#http = http;
    this.#player = player;
    void program.exited.then(() => this.#hasEnded = true);
  }

  /** Throws unless the broadcast goes on, and the database writes and reads. */
  async check(): Promise<void> {
    try {
      for (let parts = 0; parts < 3; parts++) {
        const { done } = await inTime(this.#player.read(), NEXT_MS, "the broadcast stands still");
        if (done) throw new Error("the broadcast ended");
      }
      const title = crypto.randomUUID();
      await this.#call(`playlist_add_item&title=${title}&infohash=${title.replaceAll("-", "")}00000000`);
      const found = JSON.stringify(await this.#call(`search&query=${title}`));
      if (!found.includes(title)) throw new Error("an item that was added is not found");
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${this.#program.output().slice(-2000)}`);
    }
  }

  /** Ends it by SIGTERM; throws when it ended otherwise. */
  async end(): Promise<void> {
    // Not by `child.kill`: Deno then reports the signal instead of the exit code.
    process.kill(this.#program.child.pid!, "SIGTERM");
    const code = await inTime(this.#program.exited, END_MS, "SIGTERM does not end it");
    if (code !== 0) throw new Error(`it ended with ${code}\n${this.#program.output().slice(-2000)}`);
  }

  /** Ends it in any case, if possible together with the program that broadcasts for it. */
  async stop(): Promise<void> {
    await this.#player.cancel().catch(() => {});
    if (!this.#hasEnded) await this.end().catch(() => {});
    await this.#program.stop();
  }

  async #call(method: string): Promise<unknown> {
    const response = await fetch(`${this.#http}/server/api?token=${TOKEN}&method=${method}`, {
      signal: AbortSignal.timeout(NEXT_MS),
    });
    const { result, error } = await response.json() as { result: unknown; error: unknown };
    if (error !== null) throw new Error(`${method.split("&")[0]} returned ${JSON.stringify(error)}`);
    return result;
  }
}

/**
 * Lets an engine of each command play from a copy of `dist`, writes over its files in place, as `cp` does, and then
 * builds there. Throws when one of the engines does not go on, or when the build writes in place or is not the same.
 */
export async function checkUpdate(commands: readonly string[], dist: string): Promise<void> {
  const directory = mkdtempSync(path.join(os.tmpdir(), "millrace-update-"));
  const program = path.join(directory, "program");
  const playing: { command: string; engine: Playing }[] = [];
  const each = async (when: string, what: (engine: Playing) => Promise<void>) => {
    for (const { command, engine } of playing) {
      await what(engine).catch((error) => {
        throw new Error(`${command}, ${when}: ${error.message}`);
      });
    }
  };
  try {
    mkdirSync(program);
    for (const name of BUILT) copyFileSync(path.join(dist, name), path.join(program, name));
    for (const command of commands) {
      playing.push({ command, engine: await Playing.begin(command, path.join(program, "millrace.mjs")) });
    }
    const files = BUILT.map((name) => path.join(program, name));
    for (const file of files) writeFileSync(file, new Uint8Array(statSync(file).size).fill(0xcc));
    await each("after its files were overwritten", (engine) => engine.check());
    const before = files.map((file) => statSync(file).ino);
    const built = spawnSync(process.execPath, [...DENO_FLAGS, path.join(ROOT, "scripts/build.ts"), "--into", program], {
      encoding: "utf8",
    });
    if (built.status !== 0) throw new Error(`the build failed: ${built.stderr}`);
    const kept = files.filter((file, i) => statSync(file).ino === before[i]);
    if (kept.length > 0) throw new Error(`the build wrote over ${kept.join(", ")} instead of replacing it`);
    const differing = files.filter((file) =>
      !readFileSync(file).equals(readFileSync(path.join(dist, path.basename(file))))
    );
    if (differing.length > 0) throw new Error(`a second build made something else of ${differing.join(", ")}`);
    await each("after a build", (engine) => engine.check());
    await each("at its end", (engine) => engine.end());
  } finally {
    await Promise.all(playing.map(({ engine }) => engine.stop()));
    if (existsSync(directory)) rmSync(directory, { recursive: true });
  }
}

/** The scripts run on Deno in the suite; on Node and Bun a file is all that is named. */
const DENO_FLAGS = "Deno" in globalThis ? ["run", "-A", "--no-check"] : [];

async function inTime<T>(action: Promise<T>, timeoutMs: number, why: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => timer = setTimeout(() => reject(new Error(why)), timeoutMs));
  try {
    return await Promise.race([action, late]);
  } finally {
    clearTimeout(timer);
  }
}
