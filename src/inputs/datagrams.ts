/** A transport stream in UDP datagrams, plain or in RTP, sent to one or to a group. */
import { concatBytes } from "../bytes/hex.ts";
import { ContinuityWatch } from "../bytes/ts/continuity.ts";
import type { LiveInputEvent } from "../live/broadcast/input.ts";
import { DatagramPackets } from "./datagram-packets.ts";
import { within } from "./input.ts";
import { inPackets } from "./packets.ts";
import type { SourcePorts } from "./ports.ts";
import { BoundedQueue } from "./queue.ts";
import { SILENT_AFTER_MS } from "./retry.ts";
import { RtpOrder } from "./rtp-order.ts";
import { readRtp } from "./rtp-packet.ts";
import { type DatagramSpec, describeSource } from "./spec.ts";

/** Datagrams that wait to be taken: three seconds at 10 Mb/s, as when the disk holds up the publisher. */
const QUEUE_BYTES = 4 * 1024 * 1024;
/**
 * Receive buffer requested from the kernel, for the time in which this process is busy: with its usual 200 KiB, bursts
 * of senders lost 8 %.
 */
const RECEIVE_BUFFER_BYTES = 4 * 1024 * 1024;
/** Losses are logged no more often, ms. */
const REPORT_EVERY_MS = 10_000;

/** Listens until it is left, and counts losses in `losses`. Rejects with `conflict` when the port is taken. */
export function datagramEvents(
  ports: Pick<SourcePorts, "clock" | "log" | "runtime" | "udp">,
  spec: DatagramSpec,
  losses: LossReport,
  signal: AbortSignal,
): AsyncGenerator<LiveInputEvent, void> {
  return inPackets(receive(ports, spec, losses, signal));
}

async function* receive(
  ports: Pick<SourcePorts, "clock" | "log" | "runtime" | "udp">,
  spec: DatagramSpec,
  losses: LossReport,
  signal: AbortSignal,
): AsyncGenerator<LiveInputEvent, void> {
  const { clock, log } = ports;
  const queue = new BoundedQueue<Uint8Array>(QUEUE_BYTES, (datagram) => datagram.length);
  let overflowed = false;
  const socket = await ports.udp.bind({
    // Bound to the group, a socket receives only that group; Windows cannot do this.
    host: spec.isMulticast && ports.runtime.platform === "win32" ? "0.0.0.0" : spec.host,
    port: spec.port,
    receiveBufferBytes: RECEIVE_BUFFER_BYTES,
    ...(spec.isMulticast && { multicastGroup: spec.host }),
    ...(spec.isMulticast && spec.interfaceAddress !== null && { multicastInterface: spec.interfaceAddress }),
  });
  try {
    socket.onMessage((data) => {
      if (!queue.push(data)) overflowed = true;
    });
    const order = spec.kind === "rtp" ? new RtpOrder() : null;
    const joined = new DatagramPackets();
    for (;;) {
      const filling = queue.filled(signal).then(() => true);
      if (await within(clock, SILENT_AFTER_MS, filling, signal) === null) {
        const rest = order?.flush(clock.monotonic()) ?? [];
        if (order !== null) losses.lost(order.lostPackets);
        const bytes = packetsOf(rest, joined, losses);
        if (bytes.length > 0) yield { kind: "data", bytes };
        yield { kind: "lost", reason: `no datagram came to ${describeSource(spec)} for ${SILENT_AFTER_MS / 1000} s` };
        joined.reset();
        losses.cut();
        // One listener for all waits: a new wait every few seconds would leave something of each with the signal.
        await filling;
      }
      yield* order === null
        ? plain(queue.takeAll(), joined, losses)
        : ordered(queue.takeAll(), order, joined, clock.monotonic(), losses);
      if (overflowed) {
        overflowed = false;
        joined.reset();
        losses.cut();
        log.log("warn", "datagrams came faster than they could be published");
        yield { kind: "lost", reason: "datagrams came faster than they could be published" };
      }
    }
  } finally {
    socket.close();
  }
}

/** The whole packets that `payloads` complete; those that are no transport stream are counted as strange. */
function packetsOf(payloads: readonly Uint8Array[], joined: DatagramPackets, losses: LossReport): Uint8Array {
  const packets = payloads.map((payload) => joined.push(payload));
  const good = packets.filter((bytes) => bytes !== null);
  losses.strange(packets.length - good.length);
  return concatBytes(good);
}

function* plain(
  datagrams: readonly Uint8Array[],
  joined: DatagramPackets,
  losses: LossReport,
): Generator<LiveInputEvent, void> {
  const bytes = packetsOf(datagrams, joined, losses);
  if (bytes.length === 0) return;
  losses.passed(bytes);
  yield { kind: "data", bytes };
}

function* ordered(
  datagrams: readonly Uint8Array[],
  order: RtpOrder,
  joined: DatagramPackets,
  nowMs: number,
  losses: LossReport,
): Generator<LiveInputEvent, void> {
  let parts: Uint8Array[] = [];
  let strange = 0;
  for (const datagram of datagrams) {
    const packet = readRtp(datagram);
    if (packet === null) {
      strange++;
      continue;
    }
    const { payloads, isCut } = order.push(packet, nowMs);
    if (isCut) {
      const bytes = packetsOf(parts, joined, losses);
      if (bytes.length > 0) yield { kind: "data", bytes };
      parts = [];
      joined.reset();
      yield { kind: "lost", reason: "the RTP sender began again" };
    }
    parts.push(...payloads);
  }
  losses.strange(strange);
  // Before the data: who takes it may leave.
  losses.lost(order.lostPackets);
  const bytes = packetsOf(parts, joined, losses);
  if (bytes.length > 0) yield { kind: "data", bytes };
}

/** Reports losses, now and then. A lost datagram is no cut: decoders see it by the continuity counters. */
export class LossReport {
  readonly #ports: Pick<SourcePorts, "clock" | "log">;
  readonly #source: string;
  #continuity = new ContinuityWatch();
  #lost = 0;
  #strange = 0;
  #told = { lost: 0, strange: 0, atMs: -Infinity };

  constructor(ports: Pick<SourcePorts, "clock" | "log">, source: string) {
    this.#ports = ports;
    this.#source = source;
  }

  /** Packets that are missing so far: of RTP, or else transport packets, at least. */
  get lostPackets(): number {
    return this.#lost;
  }

  /** These transport packets came in plain datagrams. */
  passed(packets: Uint8Array): void {
    this.#lost += this.#continuity.missing(packets);
    this.#tell();
  }

  /** What comes next does not continue what came before, and that was reported. */
  cut(): void {
    this.#continuity = new ContinuityWatch();
  }

  /** `total` packets of RTP are missing so far. */
  lost(total: number): void {
    this.#lost = total;
    this.#tell();
  }

  /** `more` datagrams were no transport packets. */
  strange(more: number): void {
    this.#strange += more;
    this.#tell();
  }

  #tell(): void {
    const { lost, strange, atMs } = this.#told;
    const nowMs = this.#ports.clock.monotonic();
    if ((this.#lost === lost && this.#strange === strange) || nowMs - atMs < REPORT_EVERY_MS) return;
    this.#ports.log.log("warn", `datagrams of ${this.#source} were lost or are no MPEG TS`, {
      lostPackets: this.#lost - lost,
      strangeDatagrams: this.#strange - strange,
    });
    this.#told = { lost: this.#lost, strange: this.#strange, atMs: nowMs };
  }
}
