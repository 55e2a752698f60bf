/** A network on virtual time between real `LiveNode`s: uplinks that send one block after the other, and latency. */
import type { MillraceError } from "../../src/errors.ts";
import { attachSignature, blockCount, encodeUnsigned, type PieceHeader } from "../../src/live/header.ts";
import { LiveNode } from "../../src/live/node/live-node.ts";
import type { LiveNodeOptions } from "../../src/live/node/live-options.ts";
import type { LiveLink, LivePeer } from "../../src/live/node/live-peer.ts";
import type { LiveVerifier } from "../../src/live/signer.ts";
import type { EventWheel } from "./event-wheel.ts";

/** Unix ms at virtual time 0. */
export const EPOCH_MS = 1_800_000_000_000;

/** Genuine and poisoned payload: told apart by their buffer, so that millions of blocks cost nothing. */
export const GENUINE = new Uint8Array(1 << 20);
export const POISON = new Uint8Array(1 << 20).fill(1);
const SIGNATURE = new Uint8Array(64).fill(1);

/** Answers at once; only `GENUINE` bytes under the simulated signature pass. */
export const SIMULATED_VERIFIER: LiveVerifier = {
  header: (header, done) => done(header.signature[0] === 1),
  block: (data, _hash, done) => done(data.buffer === GENUINE.buffer),
};

/** A signed header of the simulation. */
export function simulatedHeader(
  fields: { epoch?: number; seq: number; timestampMs: number; flags: number; lengthBytes: number },
): PieceHeader {
  const unsigned = { epoch: 1, ...fields, hashes: new Uint8Array(20 * blockCount(fields.lengthBytes)) };
  return attachSignature(unsigned, encodeUnsigned(unsigned), SIGNATURE);
}

/** How a host behaves. */
export interface HostOptions {
  readonly role: "source" | "viewer";
  readonly uplinkBytesPerS: number;
  readonly poisons?: boolean;
}

/** What a node takes its uplink for at first: a source is told, a line that takes all at once hides what it is. */
function firstGuess({ role, uplinkBytesPerS }: HostOptions, bytesPerS: number): number {
  if (role === "source" || uplinkBytesPerS === 0) return uplinkBytesPerS;
  return uplinkBytesPerS === Infinity ? 4 * bytesPerS : bytesPerS / 2;
}

/** A machine with a node on it. */
export class SimHost {
  readonly node: LiveNode;
  readonly options: HostOptions;
  readonly links = new Map<SimHost, SimLink>();
  readonly banned = new Set<SimHost>();
  readonly bornMs: number;
  alive = true;
  freeAtMs = 0;
  controlBytes = 0;

  constructor(queue: EventWheel, options: HostOptions, stream: LiveNodeOptions["stream"], random: () => number) {
    this.options = options;
    this.bornMs = queue.nowMs;
    this.node = new LiveNode({
      clock: { now: () => EPOCH_MS + Math.floor(queue.nowMs), monotonic: () => queue.nowMs },
      verifier: SIMULATED_VERIFIER,
      random,
      role: options.role,
      stream,
      uplinkBytesPerS: firstGuess(options, stream.bytesPerS),
    });
  }

  /** Hangs up on a neighbour of no use; false when there is none. */
  makeRoom(): boolean {
    const peer = this.node.expendable();
    if (peer === null) return false;
    peer.link.close(null);
    return true;
  }
}

/** One direction of a connection. */
class SimLink implements LiveLink {
  private readonly queue: EventWheel;
  readonly from: SimHost;
  readonly to: SimHost;
  readonly latencyMs: number;
  bufferedBytes = 0;
  open = true;
  /** The sender's view of the far end, and the far end's of the sender. */
  local: LivePeer | null = null;
  remote: LivePeer | null = null;

  constructor(queue: EventWheel, from: SimHost, to: SimHost, latencyMs: number) {
    this.queue = queue;
    this.from = from;
    this.to = to;
    this.latencyMs = latencyMs;
  }

  send(message: Uint8Array): void {
    this.from.controlBytes += message.length + 6;
    this.deliver((peer) => this.to.node.message(peer, message));
  }

  request(seq: number, offset: number, length: number): void {
    this.from.controlBytes += 17;
    this.deliver((peer) => this.to.node.requested(peer, seq, offset, length));
  }

  cancel(seq: number, offset: number): void {
    this.from.controlBytes += 17;
    this.deliver((peer) => this.to.node.cancelled(peer, seq, offset));
  }

  reject(seq: number, offset: number): void {
    this.from.controlBytes += 17;
    this.deliver((peer) => this.to.node.rejected(peer, seq, offset));
  }

  piece(seq: number, offset: number, data: Uint8Array): void {
    const { from, queue } = this;
    const payload = from.options.poisons === true ? POISON.subarray(0, data.length) : data;
    this.bufferedBytes += data.length;
    from.freeAtMs = Math.max(from.freeAtMs, queue.nowMs) + data.length / from.options.uplinkBytesPerS * 1000;
    queue.at(from.freeAtMs, () => {
      if (!this.open) return;
      this.bufferedBytes -= data.length;
      this.deliver((peer) => this.to.node.block(peer, seq, offset, payload));
      from.node.sent(data.length);
    });
  }

  close(error: MillraceError | null): void {
    if (error?.code === "protocol_violation") this.from.banned.add(this.to);
    disconnect(this.from, this.to);
  }

  private deliver(act: (peer: LivePeer) => void): void {
    this.queue.after(this.latencyMs, () => {
      if (this.open && this.to.alive && this.remote !== null) act(this.remote);
    });
  }
}

/** Connects two hosts; both ends hear of it after one and a half round trips. */
export function connect(queue: EventWheel, a: SimHost, b: SimHost, latencyMs: number): boolean {
  if (a === b || a.links.has(b) || a.banned.has(b) || b.banned.has(a) || !a.alive || !b.alive) return false;
  const there = new SimLink(queue, a, b, latencyMs);
  const back = new SimLink(queue, b, a, latencyMs);
  a.links.set(b, there);
  b.links.set(a, back);
  queue.after(3 * latencyMs, () => {
    if (!there.open) return;
    there.local = back.remote = a.node.connected(there, {
      role: b.options.role,
      upBytesPerS: b.node.toldUpBytesPerS,
    });
    back.local = there.remote = b.node.connected(back, {
      role: a.options.role,
      upBytesPerS: a.node.toldUpBytesPerS,
    });
    // Each end may speak before the other is told; nothing arrives in less than the latency.
  });
  return true;
}

/** Ends the connection of two hosts. */
export function disconnect(a: SimHost, b: SimHost): void {
  for (const [from, to] of [[a, b], [b, a]] as const) {
    const link = from.links.get(to);
    if (link === undefined) continue;
    from.links.delete(to);
    link.open = false;
    if (link.local !== null && !link.local.closed) from.node.disconnected(link.local);
    link.bufferedBytes = 0;
  }
}
