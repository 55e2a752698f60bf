/**
 * One process of the live bench; its arguments say which part it plays. Reports events as JSON lines.
 *
 * `broadcaster <clip> <seconds> <upload limit, bytes/s>`: loops the clip, paced by its clock, until killed. `viewers
 * <count> <delay between, ms> <first delay, ms> <magnet>`: each has its own engine, read over its HTTP handler.
 */
import process from "node:process";
import { loadPorts } from "../../platform/detect.ts";
import { PACKET_BYTES, pcrAt } from "../../src/bytes/ts/packet.ts";
import { readPcr, stepBetween } from "../../src/bytes/ts/stamps.ts";
import { createEngine, type EngineOptions } from "../../src/engine.ts";
import type { LiveInputEvent } from "../../src/live/broadcast/input.ts";
import { openSource } from "../../src/inputs/open.ts";

/** A longer step between two PCRs is a gap, ms. */
const LONGEST_STEP_MS = 250;
const ALONE: EngineOptions = { peerHost: "127.0.0.1", peerPort: 0, dht: false, lsd: false, cache: "ram" };
const ports = await loadPorts({ log: { level: process.env.LIVE_LOG === "1" ? "info" : "error" } });
const say = (message: Record<string, unknown>) => console.log(JSON.stringify(message));

/** The PCRs in `bytes`, which begin at the start of a packet, 90 kHz. */
function* pcrs(bytes: Uint8Array): Iterable<number> {
  for (let at = 0; at + PACKET_BYTES <= bytes.length; at += PACKET_BYTES) {
    const pcr = pcrAt(bytes, at);
    if (pcr >= 0) yield readPcr(bytes, pcr);
  }
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
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
        const bytes = new Uint8Array(rest.length + event.bytes.length);
        bytes.set(rest);
        bytes.set(event.bytes, rest.length);
        for (const pcr of pcrs(bytes)) offsetMs = Math.min(offsetMs, Date.now() - pcr / 90);
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
  let lastMs = performance.now();
  let lastCpu = cpuSeconds();
  setInterval(() => {
    const { peers, children, uploadBytesPerSecond, uploadedBytes, headSeq, uplinkBytesPerSecond } = broadcast.status();
    const nowMs = performance.now();
    const cpu = 100 * (cpuSeconds() - lastCpu) / ((nowMs - lastMs) / 1000);
    [lastMs, lastCpu] = [nowMs, cpuSeconds()];
    const status = { peers, children, uploadBytesPerSecond, uploadedBytes, headSeq, uplinkBytesPerSecond };
    say({ broadcaster: { ...status, cpu, offsetMs } });
  }, 1000);
}

async function viewer(name: string, magnet: string): Promise<void> {
  const engine = await createEngine(ports, ALONE);
  const requestedMs = performance.now();
  const get = (url: string) => engine.fetch(new Request(url, { headers: { host: "127.0.0.1" } }));
  const query = new URLSearchParams({ format: "json", magnet, pid: name });
  const { response, error } = await (await get(`http://127.0.0.1/engine/getstream?${query}`)).json();
  if (error !== null) return say({ viewer: name, error });
  const startedMs = performance.now() - requestedMs;
  const body = (await get(response.playback_url)).body!;
  let first: number | null = null;
  let last: number | null = null;
  let joinMs: number | null = null;
  let missingMs = 0;
  let playedMs = 0;
  let rest: Uint8Array = new Uint8Array();
  let offsets: number[] = [];
  setInterval(() => {
    const status = engine.broadcasts.list()[0]?.status();
    say({
      viewer: name,
      startedMs,
      joinMs,
      playedMs,
      missingMs,
      // Wall time at which each PCR arrived, minus the PCR: the least and the most in this second.
      arrival: offsets.length === 0 ? null : [Math.min(...offsets), Math.max(...offsets)],
      peers: status?.peers,
      parents: status?.parents,
      children: status?.children,
      uploadedBytes: status?.uploadedBytes,
      downloadedBytes: status?.downloadedBytes,
      wastedBytes: status?.wastedBytes,
    });
    offsets = [];
  }, 1000);
  for await (const chunk of body) {
    const bytes = new Uint8Array(rest.length + chunk.length);
    bytes.set(rest);
    bytes.set(chunk, rest.length);
    for (const pcr of pcrs(bytes)) {
      first ??= pcr;
      const stepMs = last === null ? 0 : stepBetween(last, pcr) / 90;
      playedMs += stepMs;
      // When the clip starts again, the step is longer than between its PCRs.
      if (stepMs > LONGEST_STEP_MS || stepMs < 0) missingMs += Math.abs(stepMs);
      last = pcr;
      offsets.push(Date.now() - pcr / 90);
      if (joinMs === null && stepBetween(first, pcr) >= 90_000) joinMs = performance.now() - requestedMs;
    }
    rest = bytes.slice(bytes.length - bytes.length % PACKET_BYTES);
  }
  say({ viewer: name, ended: true });
}

const [role = "", ...args] = process.argv.slice(2);
if (role === "broadcaster") await broadcaster(args[0]!, Number(args[1]), Number(args[2]));
else {
  const [count, delayMs, firstMs, magnet] = [Number(args[0]), Number(args[1]), Number(args[2]), args[3]!];
  let lastMs = performance.now();
  let lastCpu = cpuSeconds();
  setInterval(() => {
    const nowMs = performance.now();
    say({ cpu: 100 * (cpuSeconds() - lastCpu) / ((nowMs - lastMs) / 1000), pid: process.pid });
    [lastMs, lastCpu] = [nowMs, cpuSeconds()];
  }, 1000);
  for (let i = 0; i < count; i++) {
    setTimeout(() => void viewer(`${process.pid}-${i}`, magnet), firstMs + i * delayMs);
  }
}
