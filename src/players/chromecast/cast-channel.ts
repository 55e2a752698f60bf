/** A connection to a CASTV2 receiver: requests and their replies, and the heartbeat. */
import { Allowance } from "../../bytes/allowance.ts";
import { withSignal } from "../../bytes/deadline.ts";
import { faultFields, guarded, guardedClock } from "../../bytes/guarded-clock.ts";
import { turnWhenDue } from "../../bytes/turn.ts";
import { abortError, MillraceError } from "../../errors.ts";
import type { ByteConnection, Clock, DeviceTlsPort, Logger, SocketAddress, Timer } from "../../ports.ts";
import { castFrames, decodeCastMessage, encodeCastMessage } from "./cast-message.ts";

/** Our own name as a sender, by the protocol's convention. */
const SENDER = "sender-0";
/** The receiver itself, as opposed to an application that runs there. */
export const RECEIVER = "receiver-0";
const CONNECTION = "urn:x-cast:com.google.cast.tp.connection";
const HEARTBEAT = "urn:x-cast:com.google.cast.tp.heartbeat";
/** Interval of PINGs, ms: a receiver drops a sender that is silent for 8 s. A receiver that is silent for `GONE_AFTER_MS` is gone. */
const PING_EVERY_MS = 5000;
const GONE_AFTER_MS = 15_000;
/** Most messages that a device has not read yet: one that reads none is gone or hangs. */
const MAX_UNSENT = 64;
/** Messages read per second, and how many may accumulate: a device that plays sends one or two. Reading one takes up to 12 ms. */
const MESSAGES_PER_SECOND = 16;
const MESSAGES_AT_ONCE = 64;
/** Longest error text of a device that is shown, characters. */
const MAX_REASON_CHARS = 200;

/** What the connection needs of the machine. */
export interface CastPorts {
  readonly deviceTls: DeviceTlsPort;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A receiver's reply: untrusted JSON. */
export type CastReply = Readonly<Record<string, unknown>> & { readonly type: string };

/** An open connection. An exception in its timers or in reading a message ends it, and nobody else notices. */
export class CastChannel {
  readonly #connection: ByteConnection;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #clock: Clock;
  readonly #name: string;
  readonly #gone = new AbortController();
  /** Callbacks for pending replies, by request number. */
  readonly #awaited = new Map<number, (reply: CastReply) => void>();
  /** Destinations with an open virtual connection. */
  readonly #joined = new Set<string>();
  #requests = 0;
  #heardMs: number;
  #ping: Timer | null = null;

  readonly #log: Logger;

  private constructor(connection: ByteConnection, { clock, log }: CastPorts, name: string) {
    this.#connection = connection;
    this.#writer = connection.writable.getWriter();
    this.#clock = guardedClock(clock, (error) => this.#failed(error));
    this.#log = log;
    this.#name = name;
    this.#heardMs = clock.monotonic();
  }

  /** Connects to the receiver at `target`, shown to people as `name`. Rejects with `connection_failed` or the signal's reason. */
  static async open(ports: CastPorts, target: SocketAddress, name: string, signal: AbortSignal): Promise<CastChannel> {
    const connection = await ports.deviceTls.connectUnverified(target, { signal });
    const channel = new CastChannel(connection, ports, name);
    void channel.#read();
    channel.#beat();
    channel.join(RECEIVER);
    return channel;
  }

  get isClosed(): boolean {
    return this.#gone.signal.aborted;
  }

  /** Opens the virtual connection that `destination` needs before other messages. */
  join(destination: string): void {
    if (this.#joined.has(destination)) return;
    this.#joined.add(destination);
    this.#send(CONNECTION, destination, { type: "CONNECT", origin: {}, userAgent: "millrace" });
  }

  /** Sends a request and returns the reply. Rejects with `connection_failed` when the connection ends first, or with the signal's reason. */
  async request(
    namespace: string,
    destination: string,
    body: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<CastReply> {
    const requestId = ++this.#requests;
    const either = AbortSignal.any([signal, this.#gone.signal]);
    if (either.aborted) throw abortError(either);
    const reply = new Promise<CastReply>((resolve) => this.#awaited.set(requestId, resolve));
    try {
      this.#send(namespace, destination, { ...body, requestId });
      return await withSignal(reply, either);
    } finally {
      this.#awaited.delete(requestId);
    }
  }

  /** Drops the connection; playback continues. */
  close(why: MillraceError = new MillraceError("closed", "the connection to the device was closed")): void {
    if (this.isClosed) return;
    this.#gone.abort(why);
    this.#ping?.cancel();
    this.#connection.close();
  }

  #failed(cause: unknown): void {
    if (cause instanceof MillraceError) return this.#lost(cause);
    const fields = { player: this.#name, ...faultFields(cause) };
    this.#log.log("error", "a fault of the engine ended the connection to a player", fields);
    const what = `a fault of the engine ended the connection to ${this.#name}: try again`;
    this.close(new MillraceError("internal", what, { cause }));
  }

  #lost(cause?: unknown): void {
    this.close(new MillraceError("connection_failed", `${this.#name} closed the connection`, { cause }));
  }

  #send(namespace: string, destination: string, body: Readonly<Record<string, unknown>>): void {
    if (this.isClosed) return;
    if ((this.#writer.desiredSize ?? 0) < -MAX_UNSENT) return this.#lost();
    const message = encodeCastMessage({ source: SENDER, destination, namespace, text: JSON.stringify(body) });
    this.#writer.write(message).catch((error) => this.#lost(error));
  }

  #beat(): void {
    this.#ping = this.#clock.setTimeout(() => {
      if (this.#clock.monotonic() - this.#heardMs >= GONE_AFTER_MS) return this.#lost();
      this.#send(HEARTBEAT, RECEIVER, { type: "PING" });
      if (!this.isClosed) this.#beat();
    }, PING_EVERY_MS);
  }

  async #read(): Promise<void> {
    const nowMs = () => this.#clock.monotonic();
    const allowance = new Allowance(MESSAGES_PER_SECOND, MESSAGES_AT_ONCE, nowMs());
    const take = guarded((frame: Uint8Array) => this.#take(frame), (error) => this.#failed(error));
    try {
      for await (const frame of castFrames(this.#connection.readable)) {
        if (this.isClosed) return;
        await turnWhenDue(this.#gone.signal);
        if (!allowance.take(1, nowMs)) return this.#lost(new MillraceError("protocol_violation", "too many messages"));
        this.#heardMs = nowMs();
        take(frame);
      }
      this.#lost();
    } catch (error) {
      this.#lost(error);
    }
  }

  #take(frame: Uint8Array): void {
    const message = decodeCastMessage(frame);
    const body = message === null ? null : readJson(message.text);
    if (message === null || body === null) return;
    const { source, namespace } = message;
    if (namespace === HEARTBEAT) {
      if (body.type === "PING") this.#send(HEARTBEAT, source, { type: "PONG" });
    } else if (namespace === CONNECTION) {
      if (body.type === "CLOSE") this.#joined.delete(source);
      if (body.type === "CLOSE" && source === RECEIVER) this.#lost();
    } else if (typeof body["requestId"] === "number") {
      this.#awaited.get(body["requestId"])?.(body);
    }
  }
}

function readJson(text: string): CastReply | null {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null && typeof (value as CastReply).type === "string"
      ? value as CastReply
      : null;
  } catch {
    return null;
  }
}

/** A device's reason for an unexpected reply. */
export function reasonIn({ type, ...reply }: CastReply): string {
  const said = reply["reason"] ?? reply["detailedErrorCode"];
  const more = typeof said === "string" || typeof said === "number" ? ` (${said})` : "";
  return `${type}${more}`.slice(0, MAX_REASON_CHARS);
}
