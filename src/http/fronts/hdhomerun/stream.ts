/** Sends a transport stream by datagrams of seven packets, in RTP (RFC 3550, RFC 2250) or bare, as fast as it plays. */
import { Allowance } from "../../../bytes/allowance.ts";
import { sleep } from "../../../bytes/deadline.ts";
import { PACKET_BYTES } from "../../../bytes/ts/packet.ts";
import { inPackets } from "../../../inputs/packets.ts";
import { LIVE_RATE, paced } from "../../../inputs/pacer.ts";
import type { LiveInputEvent } from "../../../live/broadcast/input.ts";
import type { Clock, UdpSocket } from "../../../ports.ts";
import type { StreamTarget } from "./tuners.ts";

/** Packets of one datagram: programs take no other number. */
const PACKETS = 7;
const DATAGRAM_BYTES = PACKETS * PACKET_BYTES;
const RTP_BYTES = 12;
/** What the payload is: MPEG-2 transport streams (RFC 3551). */
const RTP_TYPE = 33;

/** How far ahead of its time data leaves, ms: programs begin sooner, and have something for moments without any. */
const LEAD_MS = 500;
/** Sent no faster than this, bytes/s, with so much at once: kernels keep 200 KiB for a program, and drop the rest. */
const BYTES_PER_S = 6 * 1024 * 1024;
const AT_ONCE_BYTES = 48 * 1024;
/** Pause before more than that, ms. */
const REST_MS = 4;

/** Sends `body` until it ends. Rejects with the signal's reason, and with what `body` fails with. */
export async function sendStream(
  body: ReadableStream<Uint8Array>,
  socket: UdpSocket,
  to: StreamTarget,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const allowance = new Allowance(BYTES_PER_S, AT_ONCE_BYTES, clock.monotonic());
  const headBytes = to.isRtp ? RTP_BYTES : 0;
  const source = crypto.getRandomValues(new Uint32Array(1))[0]!;
  let sequence = 0;
  let datagram = new Uint8Array(headBytes + DATAGRAM_BYTES);
  let filled = headBytes;
  const pace = { leadMs: LEAD_MS, rate: () => LIVE_RATE, needsClock: false };
  for await (const event of paced(inPackets(eventsOf(body, signal)), clock, pace, signal)) {
    if (event.kind === "lost") continue;
    for (let at = 0; at < event.bytes.length;) {
      const part = event.bytes.subarray(at, at + datagram.length - filled);
      datagram.set(part, filled);
      filled += part.length;
      at += part.length;
      if (filled < datagram.length) break;
      if (to.isRtp) writeRtp(datagram, sequence++, clock.monotonic(), source);
      while (!allowance.take(datagram.length, () => clock.monotonic())) await sleep(clock, REST_MS, signal);
      void socket.send(datagram, to);
      datagram = new Uint8Array(datagram.length);
      filled = headBytes;
    }
  }
}

function writeRtp(datagram: Uint8Array, sequence: number, nowMs: number, source: number): void {
  const view = new DataView(datagram.buffer);
  view.setUint16(0, 0x8000 | RTP_TYPE);
  view.setUint16(2, sequence & 0xffff);
  view.setUint32(4, Math.floor(nowMs * 90) >>> 0);
  view.setUint32(8, source);
}

async function* eventsOf(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<LiveInputEvent> {
  const reader = body.getReader();
  const leave = () => void reader.cancel().catch(() => {});
  signal.addEventListener("abort", leave, { once: true });
  try {
    if (signal.aborted) return;
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      yield { kind: "data", bytes: next.value };
    }
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}
