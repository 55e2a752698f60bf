/**
 * Further connections to neighbours, for the blocks that we push to them. On TCP a lost packet holds back everything behind it, and
 * halves what its connection carries. Neither side needs them: they end with the first, and may end before it.
 */
import { deadline } from "../../bytes/deadline.ts";
import { equalBytes } from "../../bytes/hex.ts";
import { MillraceError } from "../../errors.ts";
import type { Clock, TcpConnection } from "../../ports.ts";
import { samePeerId } from "../../swarm/neighbours/address.ts";
import type { DialSlots } from "../../swarm/neighbours/dial-slots.ts";
import type { Connects } from "../../swarm/neighbours/transports.ts";
import type { LiveNode } from "../node/live-node.ts";
import { MAX_SPARES } from "../node/neighbour/live-lane.ts";
import { SECOND_TOKEN_BYTES } from "../../wire/live-exchange.ts";
import { encodeSecondMessage, type SecondMessage } from "../second-message.ts";
import type { LivePeerSession } from "./live-session.ts";
import { DIAL_TIMES } from "./redial.ts";

/** One that failed, or ended, is tried again after this, ms: newcomers may have needed its place. */
const RETRY_MS = 15_000;

/** What these connections need of their swarm (`LivePeers`). */
export interface SpareLinksHost {
  readonly clock: Clock;
  readonly node: Pick<LiveNode, "wantsSpare">;
  readonly tcp: Connects;
  readonly slots: DialSlots;
  /** All connections of the swarm. */
  sessions(): Iterable<LivePeerSession>;
  /** Whether there is a place for another connection to this host. */
  hasPlace(host: string): boolean;
  /** Shakes hands over another connection to the member of `first`. */
  join(first: LivePeerSession, connection: TcpConnection, token: Uint8Array): void;
  failed(error: unknown): void;
}

/** What is known about further connections to one member. */
interface Seconding {
  /** What we gave it, and what it gave us; null before. */
  readonly ours: Uint8Array;
  theirs: Uint8Array | null;
  /** Monotonic ms at which one was tried or asked for, or ended; -Infinity once it has come. */
  triedMs: number;
}

/** The further connections of one swarm: `MAX_SPARES` to a neighbour. */
export class SpareLinks {
  readonly #host: SpareLinksHost;
  readonly #members = new WeakMap<LivePeerSession, Seconding>();
  readonly #ending = new AbortController();

  constructor(host: SpareLinksHost) {
    this.#host = host;
  }

  /** A member joined: it is told by what we recognise another connection of its. */
  joined(session: LivePeerSession): void {
    const ours = crypto.getRandomValues(new Uint8Array(SECOND_TOKEN_BYTES));
    this.#members.set(session, { ours, theirs: null, triedMs: -Infinity });
    session.link!.sendLive(encodeSecondMessage({ type: "second", token: ours, isAsked: false }));
  }

  /** `session` told us its token, and may ask us to connect. */
  message(session: LivePeerSession, { token, isAsked }: SecondMessage): void {
    const member = this.#members.get(session);
    if (member === undefined) return;
    member.theirs = token;
    if (isAsked && this.#mayTry(session, member)) this.#dial(session, member);
  }

  /** The member that the connection `session` belongs to by its token; null when to none. */
  firstOf(session: LivePeerSession): LivePeerSession | null {
    const token = session.extensions?.live?.joins;
    if (token === undefined) return null;
    for (const first of this.#host.sessions()) {
      const member = this.#members.get(first);
      if (member === undefined || isFull(first) || !isSame(first, session)) continue;
      if (equalBytes(member.ours, token)) return first;
    }
    return null;
  }

  /** `first` has another connection: the next may be tried at once. */
  spareJoined(first: LivePeerSession): void {
    const member = this.#members.get(first);
    if (member !== undefined) member.triedMs = -Infinity;
  }

  /** `session` has ended. */
  left({ first }: LivePeerSession): void {
    const member = first === null ? undefined : this.#members.get(first);
    if (member !== undefined) member.triedMs = this.#host.clock.monotonic();
  }

  /** True when `newer` may be another connection to the peer of `older`: its extended handshake will say. */
  mayJoin(older: LivePeerSession, newer: LivePeerSession): boolean {
    return newer.extensions === null && !isFull(older) && this.#members.has(older) && isSame(older, newer);
  }

  /** Opens those that are wanted. Call it every second. */
  round(): void {
    for (const session of [...this.#host.sessions()]) {
      const member = this.#members.get(session);
      if (member === undefined || !this.#host.node.wantsSpare(session.peer!)) continue;
      if (!this.#mayTry(session, member)) continue;
      if (session.address !== null && !session.isUnreachable) this.#dial(session, member);
      else {
        member.triedMs = this.#host.clock.monotonic();
        session.link!.sendLive(encodeSecondMessage({ type: "second", token: member.ours, isAsked: true }));
      }
    }
  }

  close(): void {
    this.#ending.abort();
  }

  #mayTry(session: LivePeerSession, { triedMs, theirs }: Seconding): boolean {
    // What came by hole punching leads to no port.
    if (!session.isReady || isFull(session) || session.isPunched || theirs === null) return false;
    return this.#host.clock.monotonic() - triedMs >= RETRY_MS && this.#host.hasPlace(session.host);
  }

  #dial(session: LivePeerSession, member: Seconding): void {
    const { slots, failed } = this.#host;
    if (session.address === null || !slots.tryTake()) return;
    member.triedMs = this.#host.clock.monotonic();
    this.#connect(session, member.theirs!).catch(failed).finally(() => slots.release());
  }

  async #connect(session: LivePeerSession, token: Uint8Array): Promise<void> {
    const { clock, tcp } = this.#host;
    const limit = deadline(clock, DIAL_TIMES.connectTimeoutMs, this.#ending.signal);
    try {
      const { address } = session.address!;
      const connection = await tcp.connect(address, { signal: limit.signal }).catch(() => null);
      if (connection === null) return;
      const isWanted = session.isReady && !isFull(session) && this.#host.hasPlace(session.host);
      if (isWanted) this.#host.join(session, connection, token);
      else connection.abort();
    } finally {
      limit.cancel();
    }
  }
}

/** Ends a connection that is neither the first to its peer nor another that we were asked for. */
export function refuseTwin(session: LivePeerSession): void {
  session.drop(new MillraceError("conflict", "connected twice to one peer"));
}

function isFull({ spares }: LivePeerSession): boolean {
  return spares.length >= MAX_SPARES;
}

function isSame(a: LivePeerSession, b: LivePeerSession): boolean {
  return a !== b && a.host === b.host && a.isReady && b.isReady && samePeerId(a.info!.peerId, b.info!.peerId);
}
