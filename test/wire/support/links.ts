/** Links with recorded handlers, joined in memory. */
import type { SocketAddress } from "../../../src/ports.ts";
import {
  acceptPeer,
  type AcceptPeerOptions,
  connectPeer,
  type ConnectPeerOptions,
  createPeerId,
} from "../../../src/wire/mod.ts";
import type { HashRequest } from "../../../src/wire/hash-messages.ts";
import type { PeerLink, PeerLinkHandlers, TorrentHandlers } from "../../../src/wire/types.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { connectionPair, type Cutter, type MemoryConnection, quiet, RawPeer, until } from "./memory-connection.ts";
export { seeded } from "../../support/random.ts";

export const INFOHASH: Uint8Array = Uint8Array.from({ length: 20 }, (_, i) => 0xa0 + i);
export const INFOHASH_HEX = "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3";

/** One event: the handler's name and its arguments. */
export type Event = [string, ...unknown[]];

/** Handlers that record each call; blocks land in `blocks` unless `discard`. */
export class Recorder implements PeerLinkHandlers, TorrentHandlers {
  readonly torrent: TorrentHandlers = this;
  readonly events: Event[] = [];
  readonly blocks: Uint8Array[] = [];
  discard = false;
  link: PeerLink | null = null;
  onEvent: (event: Event) => void = () => {};

  #note(...event: Event): void {
    this.events.push(event);
    this.onEvent(event);
  }
  /** Names of the events so far. */
  get names(): string[] {
    return this.events.map(([name]) => name);
  }
  /** Events of that name. */
  of(name: string): Event[] {
    return this.events.filter((event) => event[0] === name);
  }
  get closeError(): Error | null | undefined {
    return this.of("close")[0]?.[1] as Error | null | undefined;
  }
  ready(info: { peerId: Uint8Array; fast: boolean; dht: boolean; encrypted: boolean }): void {
    this.#note("ready", info);
  }
  extended(info: unknown): void {
    this.#note("extended", info);
  }
  dontHave(piece: number): void {
    this.#note("dontHave", piece);
  }
  choke(): void {
    this.#note("choke");
  }
  unchoke(): void {
    this.#note("unchoke");
  }
  interested(): void {
    this.#note("interested");
  }
  uninterested(): void {
    this.#note("uninterested");
  }
  bitfield(bytes: Uint8Array): void {
    this.#note("bitfield", [...bytes]);
  }
  haveAll(): void {
    this.#note("haveAll");
  }
  haveNone(): void {
    this.#note("haveNone");
  }
  have(piece: number): void {
    this.#note("have", piece);
  }
  request(piece: number, offset: number, length: number): void {
    this.#note("request", piece, offset, length);
  }
  cancel(piece: number, offset: number, length: number): void {
    this.#note("cancel", piece, offset, length);
  }
  unwanted(piece: number, offset: number, length: number): void {
    this.#note("unwanted", piece, offset, length);
  }
  reject(piece: number, offset: number, length: number): void {
    this.#note("reject", piece, offset, length);
  }
  allowedFast(piece: number): void {
    this.#note("allowedFast", piece);
  }
  blockTarget(piece: number, offset: number, length: number): Uint8Array | null {
    this.#note("blockTarget", piece, offset, length);
    if (this.discard) return null;
    const target = new Uint8Array(length);
    this.blocks.push(target);
    return target;
  }
  block(piece: number, offset: number, length: number, kept: boolean): void {
    this.#note("block", piece, offset, length, kept);
  }
  dhtPort(port: number): void {
    this.#note("dhtPort", port);
  }
  peers(added: readonly SocketAddress[], dropped: readonly SocketAddress[]): void {
    this.#note("peers", added, dropped);
  }
  metadata(infoBytes: Uint8Array): void {
    this.#note("metadata", infoBytes);
  }
  metadataFailed(error: Error): void {
    this.#note("metadataFailed", error);
  }
  hashRequest(request: HashRequest): void {
    this.#note("hashRequest", request);
  }
  hashes(request: HashRequest, hashes: Uint8Array): void {
    this.#note("hashes", request, [...hashes]);
  }
  hashReject(request: HashRequest): void {
    this.#note("hashReject", request);
  }
  live(message: Uint8Array): void {
    this.#note("live", message);
  }
  close(error: Error | null): void {
    this.#note("close", error);
  }
}

/** Options of `joined` for each end. */
export interface JoinOptions {
  readonly cut?: number | Cutter;
  readonly client?: Partial<ConnectPeerOptions>;
  readonly server?: Partial<AcceptPeerOptions & ConnectPeerOptions>;
}

/** Both ends of a connection. */
export interface Joined {
  readonly clock: FakeClock;
  readonly client: PeerLink;
  readonly server: PeerLink;
  readonly atClient: Recorder;
  readonly atServer: Recorder;
  readonly connections: [MemoryConnection, MemoryConnection];
}

/** Two of our links over one connection, handshakes done. */
export async function joined(options: JoinOptions = {}): Promise<Joined> {
  const clock = new FakeClock();
  const connections = connectionPair(options.cut ?? 0);
  const atClient = new Recorder();
  const atServer = new Recorder();
  acceptPeer(connections[1], {
    clock,
    candidates: () => ["00".repeat(20), INFOHASH_HEX],
    lookup: () => ({
      infohash: INFOHASH,
      peerId: createPeerId(),
      attach: (link) => {
        atServer.link = link;
        return atServer;
      },
      ...options.server,
    }),
    ...options.server,
  });
  const client = connectPeer(connections[0], {
    clock,
    infohash: INFOHASH,
    peerId: createPeerId(),
    handlers: atClient,
    ...options.client,
  });
  await until(() => {
    const over = (at: Recorder) => at.names.includes("extended") || at.names.includes("close");
    return over(atClient) && over(atServer);
  });
  return { clock, client, server: atServer.link!, atClient, atServer, connections };
}

/** One of our links (outgoing) with raw bytes at the other end; the handshakes are done unless `shake` is false. */
export async function againstRaw(
  options: { fast?: boolean; shake?: boolean; cut?: number | Cutter; link?: Partial<ConnectPeerOptions> } = {},
): Promise<{ clock: FakeClock; link: PeerLink; events: Recorder; raw: RawPeer }> {
  const clock = new FakeClock();
  const [ours, theirs] = connectionPair(options.cut ?? 0);
  const events = new Recorder();
  const raw = new RawPeer(theirs);
  const link = connectPeer(ours, {
    clock,
    infohash: INFOHASH,
    peerId: createPeerId(),
    handlers: events,
    ...options.link,
  });
  if (options.shake !== false) raw.send(rawHandshake(options.fast ?? true));
  await quiet(2);
  raw.received = [];
  return { clock, link, events, raw };
}

/** A BEP 3 handshake with the extension bit of BEP 10 and, if asked, that of BEP 6. */
export function rawHandshake(fast: boolean, infohash: Uint8Array = INFOHASH): number[] {
  const reserved = [0, 0, 0, 0, 0, 0x10, 0, fast ? 4 : 0];
  return [
    19,
    ...new TextEncoder().encode("BitTorrent protocol"),
    ...reserved,
    ...infohash,
    ...new Array(20).fill(0x62),
  ];
}

/** A length-prefixed message. */
export function frame(id: number, ...body: (number | Uint8Array)[]): number[] {
  const bytes = body.flatMap((part) => typeof part === "number" ? uint32(part) : [...part]);
  return [...uint32(bytes.length + 1), id, ...bytes];
}

/** Big-endian. */
export function uint32(value: number): number[] {
  return [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255];
}

/** Bytes of ASCII text. */
export function ascii(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
