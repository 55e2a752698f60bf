/** The emulated network: starts `emulator.py`, and programs at its nodes. */
import { existsSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { type Program, start } from "../../test/support/process.ts";
import type { WanNode } from "./spec.ts";

/** The system's Python, which starts at once: a version manager's can take a second. */
export const PYTHON = existsSync("/usr/bin/python3") ? "/usr/bin/python3" : "python3";
const EMULATOR = fileURLToPath(new URL("./emulator.py", import.meta.url));
/** Longest times for making the namespaces, and for ending what runs in them, ms. */
const START_TIMEOUT_MS = 30_000;
const END_TIMEOUT_MS = 15_000;

/** What the network has carried. */
export interface Carried {
  readonly packets: number;
  /** Packets that found a full queue. */
  readonly dropped: number;
  /** Packets lost on the way, as planned. */
  readonly lost: number;
  /** Packets that came more than 5 ms late, because the machine was busy. */
  readonly late: number;
  /** Processor time of the emulator, s. */
  readonly cpuS: number;
}

/** A running network. */
export class WideArea {
  readonly nodes: readonly WanNode[];
  readonly #emulator: Program;
  readonly #namespaces: readonly string[];

  private constructor(nodes: readonly WanNode[], namespaces: readonly string[], emulator: Program) {
    this.nodes = nodes;
    this.#namespaces = namespaces;
    this.#emulator = emulator;
  }

  /** Creates the network; `seed` chooses the packets that are lost. */
  static async open(nodes: readonly WanNode[], seed: number): Promise<WideArea> {
    const run = `millrace-${process.pid}-${Date.now() % 1_000_000}`;
    const namespaces = nodes.map((_, i) => `${run}-${i}`);
    const emulator = start(PYTHON, [EMULATOR]);
    const setup = { seed, nodes: nodes.map((node, i) => ({ ...node, namespace: namespaces[i] })) };
    emulator.child.stdin!.write(`${JSON.stringify(setup)}\n`);
    const network = new WideArea(nodes, namespaces, emulator);
    try {
      await emulator.line(/^up$/, START_TIMEOUT_MS);
    } catch (error) {
      await network.close().catch(() => {});
      throw error;
    }
    return network;
  }

  /** The command line that runs `command` at a node. */
  at(node: number, command: readonly string[]): string[] {
    return ["ip", "netns", "exec", this.#namespaces[node]!, ...command];
  }

  /** Starts a program at a node. */
  start(node: number, command: readonly string[]): Program {
    const [program, ...args] = this.at(node, command);
    return start(program!, args);
  }

  /** The node swallows every packet from now on. */
  hole(node: number): void {
    this.#emulator.child.stdin!.write(`hole ${node}\n`);
  }

  /** Ends the network and everything that runs in it. */
  async close(): Promise<Carried> {
    this.#emulator.child.stdin!.end();
    const [line] = await this.#emulator.line(/^\{.*\}$/, END_TIMEOUT_MS);
    await this.#emulator.exited;
    return JSON.parse(line);
  }
}
