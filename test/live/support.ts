/** A node with scripted neighbours: every message is at hand, nothing waits. */
import type { MillraceError } from "../../src/errors.ts";
import { LiveNode } from "../../src/live/node/live-node.ts";
import type { LiveNodeOptions } from "../../src/live/node/live-options.ts";
import type { LiveLink } from "../../src/live/node/neighbour/live-lane.ts";
import type { LivePeer, LivePeerInfo } from "../../src/live/node/neighbour/live-peer.ts";
import { BUNDLE, decodeBundle } from "../../src/live/bundle.ts";
import { decodeLiveMessage, encodeLiveMessage, type LiveMessage } from "../../src/live/messages.ts";
import { emptyPaths } from "../../src/live/node/neighbour/place.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { GENUINE, SIMULATED_VERIFIER, simulatedHeader } from "../simulation/live-network.ts";

export const PIECE_BYTES = 65536;

/** A link that records the calls to it. */
export class ScriptedLink implements LiveLink {
  readonly messages: LiveMessage[] = [];
  readonly requests: { seq: number; offset: number }[] = [];
  readonly cancels: { seq: number; offset: number }[] = [];
  readonly rejects: { seq: number; offset: number }[] = [];
  readonly pieces: { seq: number; offset: number; data: Uint8Array }[] = [];
  closedWith: MillraceError | null | undefined = undefined;

  /** Types of the messages that came in each BUNDLE. */
  readonly bundles: LiveMessage["type"][][] = [];

  send(message: Uint8Array): void {
    // FILL says nothing.
    const decoded = (decodeBundle(message) ?? [message]).map(decodeLiveMessage).filter((part) => part !== null);
    this.messages.push(...decoded);
    if (message[0] === BUNDLE) this.bundles.push(decoded.map(({ type }) => type));
  }
  request(seq: number, offset: number): void {
    this.requests.push({ seq, offset });
  }
  cancel(seq: number, offset: number): void {
    this.cancels.push({ seq, offset });
  }
  reject(seq: number, offset: number): void {
    this.rejects.push({ seq, offset });
  }
  piece(seq: number, offset: number, data: Uint8Array): void {
    this.pieces.push({ seq, offset, data });
  }
  close(error: MillraceError | null): void {
    this.closedWith = error;
  }
  /** Messages of one type. */
  of<T extends LiveMessage["type"]>(type: T): Extract<LiveMessage, { type: T }>[] {
    return this.messages.filter((message) => message.type === type) as Extract<LiveMessage, { type: T }>[];
  }
}

/** A neighbour. */
export interface Neighbour {
  readonly link: ScriptedLink;
  readonly peer: LivePeer;
  /** Substreams on which it is a child of the node, and that it is pushed. */
  readonly childMask: number;
  readonly pushMask: number;
  /** Substreams that it pushes to the node, or was asked to push. */
  readonly parentMask: number;
}

/** One node and its clock. */
export class Stage {
  readonly clock = new FakeClock();
  readonly startMs = this.clock.now();
  readonly node: LiveNode;
  verifications = 0;

  constructor(options: Partial<LiveNodeOptions> = {}) {
    this.node = new LiveNode({
      clock: this.clock,
      verifier: {
        header: (header, done) => {
          this.verifications++;
          SIMULATED_VERIFIER.header(header, done);
        },
        block: SIMULATED_VERIFIER.block,
      },
      random: () => 0.5,
      role: "viewer",
      stream: { pieceLengthBytes: PIECE_BYTES, bytesPerS: 125_000, substreams: 8, windowS: 30 },
      uplinkBytesPerS: null,
      ...options,
    });
  }

  /** A neighbour connects. */
  neighbour(info: Partial<LivePeerInfo> = {}): Neighbour {
    const link = new ScriptedLink();
    const peer = this.node.connected(link, { role: "viewer", upBytesPerS: null, ...info });
    const { seats, parents } = this.node;
    return {
      link,
      peer,
      get childMask() {
        return seats.mask(peer);
      },
      get pushMask() {
        return seats.pushMask(peer);
      },
      get parentMask() {
        return parents.mask(peer);
      },
    };
  }

  /** `from` sends a message. */
  says(from: Pick<Neighbour, "peer">, message: LiveMessage): void {
    this.node.message(from.peer, encodeLiveMessage(message));
  }

  /** `peer` pushes the node the substreams of `mask`, beside another parent, and no others: those go to another neighbour. */
  feeds({ peer }: Neighbour, mask: number): void {
    const other = [...this.node.peers].find((one) => one !== peer) ?? null;
    for (const branch of this.node.parents.branches) {
      if ((mask & branch.bit) === 0) {
        if (branch.next?.peer === peer) branch.forgetNext();
        if (branch.former?.peer === peer) branch.forgetFormer();
        if (branch.parent === peer) branch.parent = other;
      } else if (!branch.isFrom(peer)) branch.former = { peer, untilSeq: Infinity, sinceMs: Infinity };
    }
  }

  /** `from` reports that it has every piece of [base, solid). */
  window(from: Neighbour, base: number, solid: number): void {
    this.says(from, { type: "window", epoch: 1, base, solid, bitmap: new Uint8Array() });
  }

  /** `from` reports the same place on every substream. */
  place(
    from: Neighbour,
    place: { upBytesPerS?: number | null; depths: number; bars: number; paths?: Uint32Array | null },
  ): void {
    const { upBytesPerS = null, depths, bars, paths = emptyPaths(8) } = place;
    this.says(from, {
      type: "place",
      upBytesPerS,
      paths: paths ?? emptyPaths(8),
      pathMask: paths === null ? 0 : 0xff,
      depths: new Uint8Array(8).fill(depths),
      bars: new Uint8Array(8).fill(bars),
    });
  }

  /** `from` sends a header; pieces are half a second long. */
  header(
    from: Neighbour,
    seq: number,
    options: { forged?: boolean; ageMs?: number; epoch?: number; flags?: number } = {},
  ): void {
    const header = this.headerOf(seq, options);
    const bytes = header.bytes.slice();
    if (options.forged === true) bytes.fill(0, bytes.length - 64);
    this.says(from, { type: "header", bytes });
  }

  headerOf(seq: number, options: { ageMs?: number; epoch?: number; flags?: number } = {}) {
    return simulatedHeader({
      epoch: options.epoch ?? 1,
      seq,
      timestampMs: this.startMs - 10_000 + 500 * seq - (options.ageMs ?? 0),
      flags: options.flags ?? (seq % 2 === 0 ? 1 : 0),
      lengthBytes: PIECE_BYTES,
    });
  }

  /** `from` sends all blocks of a piece. */
  piece(from: Neighbour, seq: number): void {
    for (let offset = 0; offset < PIECE_BYTES; offset += 16384) {
      this.node.block(from.peer, seq, offset, GENUINE.subarray(0, 16384));
    }
  }

  /** `from` sends pieces 16 to 20, where `Stage.joined` begins. */
  fill(from: Neighbour): void {
    for (let seq = 16; seq <= 20; seq++) {
      this.header(from, seq);
      this.piece(from, seq);
    }
  }

  /** What `to` was sent has arrived: it echoes the PINGs that came with it. */
  echoes(to: Pick<Neighbour, "peer" | "link">): void {
    const { messages } = to.link;
    for (const message of messages.splice(0)) {
      if (message.type === "ping") this.says(to, message);
      else messages.push(message);
    }
  }

  /** So many blocks reach `to`, one each 120 ms. */
  delivers(to: Neighbour, blocks: number): void {
    for (let i = 0; i < blocks; i++) {
      this.clock.advance(120);
      this.echoes(to);
    }
  }

  /** Time passes, with a tick each 100 ms. Neighbours are heard of all the time, unless they are `mute`. */
  pass(ms: number, mute: Neighbour | null = null): void {
    for (let i = 0; i < ms; i += 100) {
      this.clock.advance(100);
      for (const peer of this.node.peers) if (peer !== mute?.peer) peer.heardMs = this.clock.monotonic();
      this.node.tick();
    }
  }

  /** `count` neighbours, joined at piece 20, at which nobody can start: window [10, 21), start at 16. */
  static joined(count = 3, options: Partial<LiveNodeOptions> = {}): { stage: Stage; peers: Neighbour[] } {
    const stage = new Stage(options);
    const peers = Array.from({ length: count }, () => stage.neighbour());
    for (const peer of peers) {
      stage.window(peer, 10, 21);
      stage.header(peer, 16);
      stage.header(peer, 20, { flags: 0 });
    }
    stage.node.tick();
    return { stage, peers };
  }
}

/** A broadcaster with `count` pieces published. */
export function source(count: number, uplinkBytesPerS: number | null = 250_000): Stage {
  const stage = new Stage({ role: "source", uplinkBytesPerS });
  for (let seq = 0; seq < count; seq++) publish(stage, seq);
  return stage;
}

/** Has a broadcaster publish piece `seq`. */
export function publish(stage: Stage, seq: number): void {
  stage.node.publish({ header: stage.headerOf(seq), data: GENUINE.subarray(0, PIECE_BYTES) });
}
