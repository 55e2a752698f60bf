/** Contenders that serve a torrent over HTTP, and what a player does with them. */
import { mkdirSync, rmSync } from "node:fs";
import { Agent, get } from "node:http";
import path from "node:path";
import { deadline, eachLine, line, start, stop } from "./children.ts";
import type { Contender } from "./contenders.ts";
import { START_TIMEOUT_MS } from "./far-swarm.ts";

/** Time limit for one step of a scenario, ms. */
const STEP_TIMEOUT_MS = 120_000;

/** A contender that serves; its clock starts when it is told to add the torrent. */
export class Serving {
  /** When it was told to add the torrent, monotonic ms. */
  readonly beganMs: number;
  readonly url: string;
  readonly pid: number;
  /** When its start reached which stage, ms after it was told: what contestants say on demand (`milestones.ts`). */
  readonly stages: ReadonlyMap<string, number>;
  readonly #end: () => Promise<void>;

  private constructor(
    { beganMs, url, pid, stages }: Pick<Serving, "beganMs" | "url" | "pid" | "stages">,
    end: () => Promise<void>,
  ) {
    this.beganMs = beganMs;
    this.url = url;
    this.pid = pid;
    this.stages = stages;
    this.#end = end;
  }

  /** Starts `who`, waits for `settled`, and has it add the torrent (or magnet). */
  static async open(
    who: Contender,
    swarm: { readonly torrent: string },
    work: string,
    settled: () => Promise<unknown> = () => Promise.resolve(),
  ): Promise<Serving> {
    const into = path.join(work, "leech");
    rmSync(into, { recursive: true, force: true });
    mkdirSync(into, { recursive: true });
    const child = start(who.command(swarm.torrent, into));
    const end = async () => {
      await stop(child);
      rmSync(into, { recursive: true, force: true });
    };
    try {
      await line(child, "READY", START_TIMEOUT_MS);
      await settled();
      const told = line(child, "URL ", START_TIMEOUT_MS);
      const stages = new Map<string, number>();
      eachLine(child, "AT ", (said) => {
        const [, ms, stage] = /^AT (\d+) (.+)$/.exec(said) ?? [];
        if (stage !== undefined) stages.set(stage, Number(ms));
      });
      const beganMs = performance.now();
      child.stdin!.write("ADD\n");
      const url = (await told).slice(4).trim();
      stages.set("URL", performance.now() - beganMs);
      return new Serving({ beganMs, url, pid: child.pid!, stages }, end);
    } catch (error) {
      await end();
      throw error;
    }
  }

  /** Ends it and removes the files it wrote. */
  close(): Promise<void> {
    return this.#end();
  }
}

/** The segments' URLs of a playlist; the URL itself for anything else. */
export async function mediaUrls(url: string): Promise<string[]> {
  if (!url.endsWith(".m3u8")) return [url];
  const text = await (await fetch(url)).text();
  return text.split("\n").filter((line) => line.startsWith("http"));
}

/** Reads from `offset` until the end or until `take` returns false; `take` receives each chunk's size. */
export function read(url: string, offset: number, agent: Agent, take: (bytes: number) => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = get(url, { agent, headers: { range: `bytes=${offset}-` } }, (response) => {
      response.on("data", (chunk: Uint8Array) => {
        if (take(chunk.length)) return;
        response.destroy();
        resolve();
      });
      response.once("end", resolve);
      response.once("error", reject);
    });
    request.once("error", reject);
  });
}

/** An agent that opens a connection for each request. */
export const fresh = () => new Agent({ keepAlive: false, maxSockets: Infinity });
/** The result of `work`, or a failure that names it. */
export const within = <T>(what: string, work: Promise<T>, timeoutMs = STEP_TIMEOUT_MS) =>
  Promise.race([work, deadline(timeoutMs, what)]);
