/** Broadcasts by the command line, and an engine that watches them. */
import path from "node:path";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import type { BroadcastFacts } from "../../platform/broadcast.ts";
import { createEngine, type Engine } from "../../src/engine.ts";
import { checkTs } from "../support/ts-check.ts";
import type { Running } from "./support.ts";

const FACTS = /^\{"event":"broadcast",/;

/** Where peers can connect. */
export type Facts = BroadcastFacts & { readonly peers: string };

/** Flags of a broadcast in `directory`. */
export function flags(directory: string): string[] {
  return [
    ...[
      "--name",
      "test tv",
      "--state-dir",
      path.join(directory, "state"),
      "--publish-dir",
      path.join(directory, "pub"),
    ],
    ...["--peer-host", "127.0.0.1", "--peer-port", "0", "--no-dht", "--no-lsd", "--json"],
  ];
}

/** What a broadcaster prints about itself. */
export async function facts(program: Running): Promise<Facts> {
  const line = await program.firstLine;
  assertMatch(line, FACTS);
  return JSON.parse(line) as Facts;
}

/** Runs `body` with an engine that knows no peers. */
export async function withViewer(body: (engine: Engine) => Promise<void>): Promise<void> {
  const engine = await createEngine(await loadPorts({ log: { level: "error" } }), {
    peerHost: "127.0.0.1",
    peerPort: 0,
    dht: false,
    lsd: false,
    swarmLingerMs: 0,
  });
  try {
    await body(engine);
  } finally {
    await engine.close();
  }
}

/** The MPEG TS output of `engine`, from a broadcaster at `peers`. */
export async function watch(engine: Engine, { magnet, peers }: Pick<Facts, "magnet" | "peers">) {
  const stream = encodeURIComponent(`${magnet}&x.pe=${peers}`);
  const started = await engine.fetch(new Request(`http://localhost/engine/getstream?magnet=${stream}`));
  assertEquals(started.status, 302, started.status === 302 ? "" : await started.text());
  const response = await engine.fetch(new Request(started.headers.get("location")!));
  assertEquals(response.status, 200, response.status === 200 ? "" : await response.text());
  return response.body!.getReader();
}

/** Reads at least `bytes`, fewer only at the end of the stream. */
export async function read(reader: ReadableStreamDefaultReader<Uint8Array>, bytes: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for (let have = 0; have < bytes;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value.slice());
    have += value.length;
  }
  return new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer());
}

/** Checks that both streams of the clip are there, in any part of it. */
export function assertPlays(ts: Uint8Array): void {
  const { problems, streams } = checkTs(ts, { isRange: true, isSegment: false });
  assertEquals(problems.filter((text) => !/PCR gap|counter/.test(text)), []);
  assert(streams.length === 2 && streams.every(({ units }) => units.length > 10));
}
