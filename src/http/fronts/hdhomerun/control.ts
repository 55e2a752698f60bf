/**
 * The control connection of a tuner (libhdhomerun, `hdhomerun_control.c`): programs get and set its variables over TCP, and
 * say once per second by datagrams that they still take the stream that goes to them.
 */
import { Allowances } from "../../../bytes/allowance.ts";
import { guarded, logFailure } from "../../../bytes/guarded-clock.ts";
import { concatBytes } from "../../../bytes/hex.ts";
import { MillraceError } from "../../../errors.ts";
import type { LineupEntry } from "../../../playlist/channel.ts";
import type {
  Clock,
  Logger,
  NetworkPort,
  RequestInfo,
  TcpConnection,
  TcpListener,
  TcpPort,
  UdpPort,
  UdpSocket,
} from "../../../ports.ts";
import { isNear, localNetworks, plainHost } from "../../../upnp/near.ts";
import { MAX_PACKET_BYTES, numbersIn, packetBytes, readPacket, writePacket } from "./packets.ts";
import { sendStream } from "./stream.ts";
import { type StreamTarget, Tuners } from "./tuners.ts";

/** Where programs connect, and where they send signs of life. */
const CONTROL_PORT = 65_001;
const STREAM_PORT = 5004;

const REQUEST = 4;
const REPLY = 5;
/** Tags of values. */
const TAG = { name: 3, value: 4, error: 5, lockKey: 0x15 } as const;

/** Connections of all machines, and of one: a program has one per device and tuner. */
const MAX_CONNECTIONS = 32;
const MAX_PER_HOST = 8;
/** A connection without a request is closed after this, ms; programs open another when they need one. */
const IDLE_MS = 60_000;
/** Requests of one machine, per second, and saved up: programs that scan ask a few times a second per tuner. */
const PER_SECOND = 50;
const AT_ONCE = 100;
/** Machines whose requests are counted. */
const MAX_SENDERS = 256;

/** What the control connection needs. */
export interface TunerControlParts {
  readonly tcp: TcpPort;
  readonly udp: UdpPort;
  readonly network: NetworkPort;
  readonly clock: Clock;
  readonly log: Logger;
  /** Where HTTP clients reach the tuner. `host` null: at all addresses of this machine. */
  readonly served: { readonly host: string | null; readonly port: number };
  /** Whether others may use it now. */
  readonly isOffered: () => boolean;
  readonly lineup: () => Promise<readonly LineupEntry[]>;
  /** The engine's own HTTP interface: it decides about the machine that asks, and starts the channel. */
  readonly ask: (request: Request, info: RequestInfo) => Promise<Response>;
}

/** Serves until it is closed. */
export class TunerControl {
  readonly #parts: TunerControlParts;
  readonly #tuners: Tuners;
  readonly #listener: Promise<TcpListener | null>;
  readonly #stream: Promise<UdpSocket | null>;
  readonly #connections = new Map<TcpConnection, string>();
  readonly #requests: Allowances;

  constructor(parts: TunerControlParts) {
    this.#parts = parts;
    const { tcp, udp, clock, log, served, lineup } = parts;
    this.#requests = new Allowances({
      perSecond: PER_SECOND,
      most: AT_ONCE,
      limit: MAX_SENDERS,
      nowMs: () => clock.monotonic(),
    });
    this.#tuners = new Tuners({ clock, log, lineup, send: (...to) => this.#send(...to) });
    const host = served.host ?? "0.0.0.0";
    const taken = (error: unknown) => {
      log.log("debug", "programs can't control the tuner", { error });
      return null;
    };
    const failed = (error: unknown) => logFailure(log, "error", "a program at the tuner was not served", error);
    this.#listener = tcp.listen({ host, port: CONTROL_PORT }, guarded((one) => this.#take(one), failed)).catch(taken);
    this.#stream = udp.bind({ host, port: STREAM_PORT }).then((socket) => {
      socket.onMessage(guarded((_data, from) => this.#tuners.seen(plainHost(from.host)), failed));
      return socket;
    }, taken);
  }

  /** Resolves when nothing is served or sent any more. */
  async close(): Promise<void> {
    const [listener, stream] = await Promise.all([this.#listener, this.#stream]);
    await listener?.close();
    for (const connection of this.#connections.keys()) connection.abort();
    this.#tuners.close();
    stream?.close();
  }

  /** This machine's address in the network of `host`; null where it is not near. */
  #ownHost(host: string): string | null {
    const own = localNetworks(this.#parts.network).find((one) => isNear(host, [one]))?.host ?? null;
    const { served } = this.#parts;
    return own === null || (served.host !== null && served.host !== own) ? null : own;
  }

  #take(connection: TcpConnection): void {
    const host = plainHost(connection.remote.host);
    const perHost = [...this.#connections.values()].filter((one) => one === host).length;
    if (
      !this.#parts.isOffered() || this.#ownHost(host) === null ||
      this.#connections.size >= MAX_CONNECTIONS || perHost >= MAX_PER_HOST
    ) {
      connection.open({ data() {}, end() {}, drain() {}, close() {} });
      return connection.abort();
    }
    this.#connections.set(connection, host);
    let begun: Uint8Array = new Uint8Array(0);
    let isBusy = false;
    const { clock, log } = this.#parts;
    let idle = clock.setTimeout(() => connection.abort(), IDLE_MS);
    const failed = (error: unknown) => {
      logFailure(log, "debug", "a program at the tuner was left", error);
      connection.abort();
    };
    const serve = async () => {
      if (isBusy) return;
      isBusy = true;
      for (
        let size = packetBytes(begun);
        size !== null && this.#connections.has(connection);
        size = packetBytes(begun)
      ) {
        if (size > MAX_PACKET_BYTES) return connection.abort();
        if (begun.length < size) break;
        if (!this.#requests.take(host)) return connection.abort();
        const request = begun.slice(0, size);
        begun = begun.slice(size);
        idle.cancel();
        idle = clock.setTimeout(() => connection.abort(), IDLE_MS);
        this.#tuners.seen(host);
        const reply = await this.#reply(request, host);
        // A client that does not take replies of 1 KiB gets no more of them.
        if (reply === null || !connection.write(reply)) return connection.abort();
      }
      isBusy = false;
    };
    connection.open({
      data: guarded((chunk) => {
        // One request waits for the reply to the one before.
        if (begun.length + chunk.length > 4 * MAX_PACKET_BYTES) return connection.abort();
        begun = concatBytes([begun, chunk]);
        return serve();
      }, failed),
      end: () => connection.end(),
      drain() {},
      close: () => {
        idle.cancel();
        this.#connections.delete(connection);
      },
    });
  }

  /** The reply to a request; null for what is none. */
  async #reply(bytes: Uint8Array, host: string): Promise<Uint8Array | null> {
    const packet = readPacket(bytes);
    if (packet?.type !== REQUEST) return null;
    const valueOf = (tag: number) => packet.values.find(([one]) => one === tag)?.[1];
    const [name, value, key] = [valueOf(TAG.name), valueOf(TAG.value), valueOf(TAG.lockKey)];
    if (name === undefined) return null;
    const wanted = textOf(name);
    try {
      if (value !== undefined) {
        await this.#tuners.set(wanted, textOf(value), {
          host,
          lockKey: key === undefined ? 0 : numbersIn(key)[0] ?? 0,
        });
      }
      const text = await this.#tuners.get(wanted);
      return writePacket({ type: REPLY, values: [[TAG.name, valueBytes(wanted)], [TAG.value, valueBytes(text)]] });
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error;
      return writePacket({ type: REPLY, values: [[TAG.error, valueBytes(`ERROR: ${error.message}`)]] });
    }
  }

  async #send(number: string, to: StreamTarget, signal: AbortSignal): Promise<void> {
    const { clock, served, ask } = this.#parts;
    const [socket, own] = [await this.#stream, this.#ownHost(to.host)];
    if (socket === null) throw new MillraceError("conflict", `UDP port ${STREAM_PORT} is taken by another program`);
    if (own === null) throw new MillraceError("denied", "the tuner is not in the network of this machine");
    const url = `http://${own}:${served.port}/auto/v${encodeURIComponent(number)}`;
    const response = await ask(new Request(url, { signal }), { remote: { host: to.host, port: to.port } });
    if (!response.ok || response.body === null) {
      throw new MillraceError("unavailable", (await response.text()).slice(0, 200) || `status ${response.status}`);
    }
    await sendStream(response.body, socket, to, clock, signal);
  }
}

/** Texts end with a zero. */
function textOf(value: Uint8Array): string {
  return new TextDecoder().decode(value).split("\0", 1)[0]!;
}

function valueBytes(text: string): Uint8Array {
  return new TextEncoder().encode(`${text}\0`).slice(0, MAX_PACKET_BYTES - 100);
}
