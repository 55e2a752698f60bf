/**
 * One process of the live bench. Its arguments say how much slower its clock runs, since when (Unix ms), and which part
 * it plays. Reports events as JSON lines; ends when its standard input does.
 *
 * `… broadcaster <clip> <bytes/s> <upload limit, bytes/s>`: loops the clip, paced by its clock, until killed. `…
 * viewers <count> <delay between, ms> <first delay, ms>`: each has its own engine, read over its HTTP handler. They
 * wait for the magnet link, a line on standard input.
 */
import process from "node:process";
import { createInterface } from "node:readline";
import { loadPorts, runtimeName } from "../../platform/detect.ts";
import { PACKET_BYTES, pcrAt } from "../../src/bytes/ts/packet.ts";
import { readPcr, stepBetween } from "../../src/bytes/ts/stamps.ts";
import { concatBytes } from "../../src/bytes/hex.ts";
import { createEngine, type EngineOptions } from "../../src/engine.ts";
import type { LiveInputEvent } from "../../src/live/broadcast/input.ts";
import { openSource } from "../../src/inputs/open-source.ts";
import { CpuMeter, everySecond, slowPorts } from "./slow-motion.ts";

/** A longer step between two PCRs is a gap, ms. */
const LONGEST_STEP_MS = 250;
const ALONE: EngineOptions = { peerHost: "127.0.0.1", peerPort: 0, dht: false, lsd: false, cache: "ram" };
if (runtimeName() === "node") (await import("../../platform/node/heap.ts")).keepHeapSmall();
const [factor, originMs, role = "", ...args] = process.argv.slice(2);
const machine = await loadPorts({ log: { level: process.env.LIVE_LOG === "1" ? "info" : "error" } });
const ports = slowPorts(machine, Number(factor), Number(originMs));
const { clock } = ports;
const say = (message: Record<string, unknown>) => console.log(JSON.stringify(message));

/** The PCRs in `bytes`, which begin at the start of a packet, 90 kHz. */
function* pcrs(bytes: Uint8Array): Iterable<number> {
  for (let at = 0; at + PACKET_BYTES <= bytes.length; at += PACKET_BYTES) {
    const pcr = pcrAt(bytes, at);
    if (pcr >= 0) yield readPcr(bytes, pcr);
  }
}

async function broadcaster(clip: string, bytesPerS: number, uploadLimit: number): Promise<void> {
  const engine = await createEngine(ports, ALONE);
  const source = await openSource(ports, clip, {
    once: false,
    stdin: () => new ReadableStream(),
    resolvePath: (path) => path,
    signal: new AbortController().signal,
  });
  // When each PCR left the source; the delay is how much later readers see it.
  let offsetMs = Infinity;
  let rest: Uint8Array = new Uint8Array();
  async function* watched(): AsyncGenerator<LiveInputEvent> {
    for await (const event of source.input) {
      if (event.kind === "data") {
        const bytes = rest.length === 0 ? event.bytes : concatBytes([rest, event.bytes]);
        for (const pcr of pcrs(bytes)) offsetMs = Math.min(offsetMs, clock.now() - pcr / 90);
        rest = bytes.slice(bytes.length - bytes.length % PACKET_BYTES);
      }
      yield event;
    }
  }
  const broadcast = await engine.broadcast({
    input: watched(),
    name: "Live bench",
    directory: null,
    bytesPerS,
    uploadLimitBytesPerSecond: uploadLimit,
  });
  const { host, port } = engine.peerAddress!;
  say({ magnet: `${broadcast.magnet}&x.pe=${host}:${port}` });
  const meter = new CpuMeter(clock);
  everySecond(clock, () => {
    const { peers, children, uploadBytesPerSecond, uploadedBytes, headSeq, uplinkBytesPerSecond } = broadcast.status();
    const status = { peers, children, uploadBytesPerSecond, uploadedBytes, headSeq, uplinkBytesPerSecond };
    say({ broadcaster: { ...status, cpu: meter.take(), offsetMs } });
  });
}

async function viewer(name: string, magnet: string): Promise<void> {
  const engine = await createEngine(ports, ALONE);
  const requestedMs = clock.monotonic();
  const get = (url: string) => engine.fetch(new Request(url, { headers: { host: "127.0.0.1" } }));
  const query = new URLSearchParams({ format: "json", magnet, pid: name });
  const { response, error } = await (await get(`http://127.0.0.1/engine/getstream?${query}`)).json();
  if (error !== null) return say({ viewer: name, error });
  const startedMs = clock.monotonic() - requestedMs;
  const body = (await get(response.playback_url)).body!;
  let first: number | null = null;
  let last: number | null = null;
  let joinMs: number | null = null;
  let missingMs = 0;
  let playedMs = 0;
  let readBytes = 0;
  let readingMs = 0;
  let rest: Uint8Array = new Uint8Array();
  let offsets: number[] = [];
  everySecond(clock, () => {
    const status = engine.broadcasts.list()[0]?.status();
    say({
      viewer: name,
      startedMs,
      joinMs,
      playedMs,
      missingMs,
      readBytes,
      // Machine time that the reading below has taken so far.
      readingMs,
      // Time at which each PCR arrived, minus the PCR: the least and the most in this second.
      arrival: offsets.length === 0 ? null : [Math.min(...offsets), Math.max(...offsets)],
      peers: status?.peers,
      parents: status?.parents,
      children: status?.children,
      uploadedBytes: status?.uploadedBytes,
      downloadedBytes: status?.downloadedBytes,
      wastedBytes: status?.wastedBytes,
    });
    offsets = [];
  });
  for await (const chunk of body) {
    const beginMs = performance.now();
    // Chunks are whole packets as a rule, and memory for a copy would be the bench's own, which the engine's heap pays for.
    const bytes = rest.length === 0 ? chunk : concatBytes([rest, chunk]);
    for (const pcr of pcrs(bytes)) {
      first ??= pcr;
      const stepMs = last === null ? 0 : stepBetween(last, pcr) / 90;
      playedMs += stepMs;
      // When the clip starts again, the step is longer than between its PCRs.
      if (stepMs > LONGEST_STEP_MS || stepMs < 0) missingMs += Math.abs(stepMs);
      last = pcr;
      offsets.push(clock.now() - pcr / 90);
      if (joinMs === null && stepBetween(first, pcr) >= 90_000) joinMs = clock.monotonic() - requestedMs;
    }
    rest = bytes.slice(bytes.length - bytes.length % PACKET_BYTES);
    readBytes += chunk.length;
    readingMs += performance.now() - beginMs;
  }
  say({ viewer: name, ended: true });
}

function viewers(count: number, delayMs: number, firstMs: number, magnet: string): void {
  const meter = new CpuMeter(clock);
  everySecond(clock, () => say({ cpu: meter.take(), pid: process.pid }));
  for (let i = 0; i < count; i++) {
    clock.setTimeout(() => void viewer(`${process.pid}-${i}`, magnet), firstMs + i * delayMs);
  }
}

const input = createInterface({ input: process.stdin }).once("close", () => process.exit());
if (role === "broadcaster") await broadcaster(args[0]!, Number(args[1]), Number(args[2]));
else {
  input.once("line", (magnet) => viewers(Number(args[0]), Number(args[1]), Number(args[2]), magnet));
  say({ ready: true });
}
