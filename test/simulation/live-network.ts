/**
 * A network on virtual time between real `LiveNode`s. Each host has an uplink that its connections share by turns; each
 * connection has a send buffer that takes whatever it is given at once, a latency of its own, and loss, which costs time.
 */
import { decodeLiveMessage, encodeLiveMessage, type PlaceMessage } from "../../src/live/messages.ts";
import { LiveNode } from "../../src/live/node/live-node.ts";
import type { LiveNodeOptions } from "../../src/live/node/live-options.ts";
import type { LivePeerInfo } from "../../src/live/node/neighbour/live-peer.ts";
import { PATH_WORDS } from "../../src/live/node/neighbour/place.ts";
import type { EventWheel } from "./event-wheel.ts";
import { LIAR_UP_SHARE, type LiarKind, liedPlace } from "./lies.ts";
import { SentMessages } from "./sent-messages.ts";
import type { Region } from "./regions.ts";
import { SimLine } from "./sim-line.ts";
import { SimLink } from "./sim-link.ts";
import { EPOCH_MS, SIMULATED_VERIFIER } from "./simulated-pieces.ts";
import { PacketLoss, type PacketLossOptions, type PacketSender } from "./tcp-stream.ts";

export { EPOCH_MS, GENUINE, POISON, SIMULATED_VERIFIER, simulatedHeader } from "./simulated-pieces.ts";

/** Members of the clique of each run. */
const CLIQUES = new WeakMap<EventWheel, SimHost[]>();
/** Tags that one of them shows in one path: with more, the path would have too many bits to be believed. */
const SHOWN_TAGS = 6;

/** How a host behaves. */
export interface HostOptions {
  readonly liar?: LiarKind;
  readonly role: "source" | "viewer";
  readonly uplinkBytesPerS: number;
  /** How much its router queues before it drops packets, ms. Messages wait there for blocks of other connections. Default 0: it does neither. */
  readonly routerMs?: number;
  /** What its user says that it may send, bytes/s. Default: nothing is said. */
  readonly limitBytesPerS?: number;
  readonly poisons?: boolean;
  /** Share of packets that is lost on the way: what that costs on average. Default 0. */
  readonly loss?: number;
  /** The same, with each packet of each connection followed by itself. Default: none is lost. */
  readonly packetLoss?: PacketLossOptions;
  /** Where it lives; absent: nowhere in particular. */
  readonly region?: Region;
  /** Nobody can connect to it; it can to those who are not so. Default false. */
  readonly isClosed?: boolean;
  /** Its NAT keeps one port per socket, so that it can meet others like it by hole punching. */
  readonly isPunchable?: boolean;
  /** How far its wall clock is ahead of the true time, ms. Default 0. */
  readonly clockAheadMs?: number;
}

/** A lost SYN is sent again after this, ms (RFC 6298). */
const SYN_MS = 1000;
/** One-way trips until both ends of a new connection can speak `live1`: TCP, the handshake, and its extensions. */
export const SET_UP_TRIPS = 4;

/** A machine with a node on it. */
export class SimHost implements PacketSender {
  readonly node: LiveNode;
  readonly options: HostOptions;
  readonly links = new Map<SimHost, SimLink>();
  readonly banned = new Set<SimHost>();
  readonly bornMs: number;
  readonly line: SimLine;
  readonly random: () => number;
  /** False when it has left, or takes and sends nothing any more without a word. */
  alive = true;
  /** Connections to closed hosts that it is trying. */
  dialing = 0;
  /** Messages that it has sent. */
  readonly sent = new SentMessages();
  /** Called when a piece has come. */
  onPiece: () => void = () => {};
  readonly loss: PacketLoss;
  readonly #liarBytesPerS: number;
  readonly #clique: SimHost[];
  static #made = 0;
  /** Names its address. */
  readonly name: string;

  constructor(queue: EventWheel, options: HostOptions, stream: LiveNodeOptions["stream"], random: () => number) {
    this.options = options;
    this.random = random;
    this.loss = new PacketLoss(options.packetLoss ?? { share: 0 }, random);
    this.#liarBytesPerS = LIAR_UP_SHARE * stream.bytesPerS;
    this.line = new SimLine(queue, options.uplinkBytesPerS, options.routerMs);
    this.bornMs = queue.nowMs;
    this.#clique = CLIQUES.get(queue) ?? [];
    CLIQUES.set(queue, this.#clique);
    if (options.liar === "clique") this.#clique.push(this);
    this.name = `host ${SimHost.#made++}`;
    this.node = new LiveNode({
      clock: {
        now: () => EPOCH_MS + (options.clockAheadMs ?? 0) + Math.floor(queue.nowMs),
        monotonic: () => queue.nowMs,
        setTimeout: (run, ms) => queue.timer(run, ms),
      },
      verifier: SIMULATED_VERIFIER,
      random,
      role: options.role,
      stream,
      onPiece: () => this.onPiece(),
      // A broadcaster's user says what the line carries; a viewer has to find out.
      uplinkBytesPerS: options.uplinkBytesPerS === 0 ? 0 : options.limitBytesPerS ?? null,
    });
  }

  packet(bytes: number): number | null {
    const leavesMs = this.alive ? this.line.packet(bytes) : null;
    return leavesMs === null || this.loss.next() ? null : leavesMs;
  }

  /** What the handshake says. */
  get info(): LivePeerInfo {
    const { options: { liar, role } } = this;
    const host = this.name;
    const takesBundles = true;
    if (liar === undefined) return { role, upBytesPerS: this.node.toldUpBytesPerS, takesBundles, host };
    return { role: liar === "sinkhole" ? "source" : role, upBytesPerS: this.#liarBytesPerS, takesBundles, host };
  }

  /** An encoded PLACE as it is sent. */
  lied(place: Uint8Array): Uint8Array {
    const { liar } = this.options;
    if (liar === undefined) return place;
    const message = decodeLiveMessage(place) as PlaceMessage;
    if (liar === "clique") message.paths.set(this.#vouching(message.paths.length));
    return encodeLiveMessage(liedPlace(message, liar, this.#liarBytesPerS));
  }

  /** Paths through the other members of the clique that have places at the source. */
  #vouching(words: number): Uint32Array {
    const shown = new Uint32Array(words);
    for (let substream = 0; substream < words / PATH_WORDS; substream++) {
      let count = 0;
      for (const { node, alive } of this.#clique) {
        const source = [...node.peers].find(({ isSource }) => isSource);
        if (!alive || node === this.node || source?.place == null || !node.parents.feeds(source, substream)) {
          continue;
        }
        if (++count > SHOWN_TAGS) break;
        for (let at = substream * PATH_WORDS; at < (substream + 1) * PATH_WORDS; at++) {
          shown[at]! |= source.place.paths[at]!;
        }
      }
    }
    return shown;
  }

  /** Hangs up on a neighbour of no use; false when there is none. */
  makeRoom(): boolean {
    const peer = this.node.expendable();
    if (peer === null) return false;
    peer.link.close(null);
    return true;
  }
}

/** Has `a` connect to `b`; both ends hear of it when it is set up. */
export function connect(queue: EventWheel, a: SimHost, b: SimHost, latencyMs: number): boolean {
  return b.options.isClosed !== true && join(queue, a, b, latencyMs);
}

/** Connects two hosts that a third brought together; false when that can't be. */
export function punch(queue: EventWheel, a: SimHost, b: SimHost, latencyMs: number): boolean {
  return a.options.isPunchable === true && b.options.isPunchable === true && join(queue, a, b, latencyMs);
}

function join(queue: EventWheel, a: SimHost, b: SimHost, latencyMs: number): boolean {
  if (a === b || a.links.has(b) || a.banned.has(b) || b.banned.has(a) || !a.alive || !b.alive) return false;
  const hangUp = () => disconnect(a, b);
  const there = new SimLink(queue, a, b, latencyMs, hangUp);
  const back = new SimLink(queue, b, a, latencyMs, hangUp);
  a.links.set(b, there);
  b.links.set(a, back);
  queue.after(SET_UP_TRIPS * latencyMs + synMs(a, b), () => {
    if (!there.open) return;
    there.local = back.remote = a.node.connected(there, b.info);
    back.local = there.remote = b.node.connected(back, a.info);
    there.local.isSource = b.options.role === "source";
    back.local.isSource = a.options.role === "source";
    // Each end may speak before the other is told; nothing arrives in less than the latency.
  });
  return true;
}

/** Opens the further connections that `host` wants. */
export function openSpares(queue: EventWheel, host: SimHost): void {
  for (const [other, { local }] of host.links) {
    if (local !== null && host.node.wantsSpare(local)) openSpare(queue, host, other);
  }
}

/** Opens another connection between two hosts that have one; `a` dials. */
function openSpare(queue: EventWheel, a: SimHost, b: SimHost): void {
  const [there, back] = [a.links.get(b), b.links.get(a)];
  // One at a time, as programs do.
  if (there?.local == null || back?.local == null || there.spares.length > there.local.spares.length) return;
  const pair = [there, back].map((link) => [link, link.another()] as const);
  for (const [link, spare] of pair) link.spares.push(spare);
  queue.after(SET_UP_TRIPS * there.latencyMs + synMs(a, b), () => {
    for (const [link, spare] of pair) {
      if (!link.open) return;
      Object.assign(spare, { local: link.local, remote: link.remote });
      link.from.node.spareOpened(link.local!, spare);
    }
  });
}

/** One that opens a connection and gets no response asks again after a second, then after two: what that costs, ms. */
function synMs(a: SimHost, b: SimHost): number {
  let againMs = 0;
  for (let waitMs = SYN_MS; a.loss.next() || b.loss.next(); waitMs *= 2) againMs += waitMs;
  return againMs;
}

/** Ends the connection of two hosts. */
export function disconnect(a: SimHost, b: SimHost): void {
  for (const [from, to] of [[a, b], [b, a]] as const) {
    const link = from.links.get(to);
    if (link === undefined) continue;
    from.links.delete(to);
    link.end();
    if (link.local !== null && !link.local.closed) from.node.disconnected(link.local);
  }
}
