/** What peers in web browsers need: WebSocket to their trackers, and WebRTC to them. */
import type { SocketAddress, TcpConnection } from "./tcp.ts";

/** A connection by WebSocket (RFC 6455) that is asked for. */
export interface WebSocketRequest {
  /** `ws:` or `wss:`. */
  readonly url: URL;
  /** Literal addresses to try in turn, whatever the URL's name resolves to by now. */
  readonly addresses: readonly string[];
  /** A longer message ends the connection, bytes. */
  readonly maxMessageBytes: number;
  /** Ends the opening. */
  readonly signal: AbortSignal;
  /** A text message has come. */
  onMessage(text: string): void;
  /** Last call, once the connection was open: it is over. */
  onClose(): void;
}

/** An open WebSocket. */
export interface WebSocketConnection {
  /** Literal address of the server. */
  readonly address: string;
  send(text: string): void;
  /** Ends it; what was sent before still leaves. */
  close(): void;
}

/** Our side of a connection by WebRTC. */
export interface PageConnection {
  /** Our description (SDP) with all our candidates. */
  readonly sdp: string;
  /** The other side's answer to our offer. Rejects with `protocol_violation`. */
  accept(sdp: string): Promise<void>;
  /** The channel, once it is open. Rejects when the attempt ends before. */
  readonly opened: Promise<TcpConnection>;
  /** Ends the attempt, or the connection. */
  close(): void;
}

/** How a connection by WebRTC is made. */
export interface PageConnectionOptions {
  /** The other side may be on this machine: its loopback address is a candidate, too. */
  readonly usesLoopback: boolean;
  /** Whether to send anything to this address, which the other side may have made up. */
  allows(address: SocketAddress): boolean;
}

/** Connections to web browsers. */
export interface PagePort {
  /** Rejects with `connection_failed`, or the signal's reason. */
  openWebSocket(request: WebSocketRequest): Promise<WebSocketConnection>;
  /** Loads what WebRTC needs; `offer` and `answer` do it, too. Rejects with `unavailable`. */
  load(): Promise<void>;
  /** Begins a connection with a data channel. Rejects with `unavailable`. */
  offer(options: PageConnectionOptions): Promise<PageConnection>;
  /** Answers an offer. Rejects with `unavailable` or `protocol_violation`. */
  answer(sdp: string, options: PageConnectionOptions): Promise<PageConnection>;
}
