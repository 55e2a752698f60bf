/** A viewer: an engine, and a player that only measures. */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Program } from "../../test/support/process.ts";
import { ALONE, type Broadcaster, START_TIMEOUT_MS } from "./programs.ts";
import { ViewerMeter } from "./viewer-meter.ts";
import { PYTHON, type WideArea } from "./wide-area.ts";

const HTTP_PORT = 6878;
const FETCH = fileURLToPath(new URL("./fetch.py", import.meta.url));
/** How much is shown of what a program said last. */
const LAST_CHARACTERS = 1000;

/** What a viewer is started with. */
export interface ViewerOptions {
  readonly network: WideArea;
  /** Its place in the network. */
  readonly node: number;
  /** The command that starts its engine. */
  readonly command: readonly string[];
  readonly broadcaster: Broadcaster;
  readonly stateDir: string;
}

/** One viewer. Its programs end with the network. */
export class Viewer {
  readonly meter: ViewerMeter;
  readonly #engine: Program;
  readonly #player: ChildProcess;
  readonly #url: string;
  #playerSaid = "";

  /** Starts the engine and a player that waits to be used. */
  constructor({ network, node, command, broadcaster, stateDir }: ViewerOptions) {
    const options = ["--http-port", String(HTTP_PORT), "--cache", "ram", "--state-dir", stateDir, ...ALONE];
    this.#engine = network.start(node, [...command, ...options]);
    const [program, ...args] = network.at(node, [PYTHON, FETCH]);
    this.#player = spawn(program!, args, { stdio: ["pipe", "pipe", "pipe"] });
    this.#player.stdin!.on("error", () => {});
    this.#url = `http://127.0.0.1:${HTTP_PORT}/engine/getstream?${new URLSearchParams({ magnet: broadcaster.magnet })}`;
    this.meter = new ViewerMeter(broadcaster.times);
    this.#measure();
  }

  /** Resolves when the engine takes requests. */
  async ready(): Promise<void> {
    await this.#engine.line(/^ready/, START_TIMEOUT_MS);
  }

  /** Begins to watch. */
  play(): void {
    this.meter.requested(Date.now());
    this.#player.stdin!.end(`${this.#url}\n`);
  }

  /** What the engine and the player said last. */
  lastWords(): string {
    return `${this.#engine.output().slice(-LAST_CHARACTERS)}${this.#playerSaid.slice(-LAST_CHARACTERS)}`;
  }

  #measure(): void {
    this.#player.stdout!.on("data", (chunk: Uint8Array) => this.meter.receives(chunk, Date.now()));
    this.#player.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.#playerSaid += text;
      const request = /^REQUEST (\d+)$/m.exec(text);
      if (request !== null) this.meter.requested(Number(request[1]));
    });
  }
}
