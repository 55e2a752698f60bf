/** The tuners that programs set and ask over the control connection: what each is tuned to, and where its stream goes. */
import { hasCode, MillraceError } from "../../../errors.ts";
import { guarded, logFailure } from "../../../bytes/guarded-clock.ts";
import type { LineupEntry } from "../../../playlist/channel.ts";
import type { Clock, Logger, SocketAddress, Timer } from "../../../ports.ts";
import { FIRMWARE, FIRMWARE_VERSION, MODEL, TUNERS } from "./device.ts";
import { CHANNEL_MAP, type Multiplex, multiplexesOf, tunedTo } from "./multiplexes.ts";

/** A tuner is free, and sends nothing, so long after the last sign of the machine that uses it, ms: it sends one per second. */
const IDLE_MS = 30_000;
/** Programs do not listen at the ports of services. */
const LEAST_PORT = 1024;
const NONE = "none";

/** What tuners need. */
export interface TunersParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly lineup: () => Promise<readonly LineupEntry[]>;
  /** Sends the stream of a channel until it ends or the signal fires; rejects with the reason when it does not play. */
  readonly send: (number: string, to: StreamTarget, signal: AbortSignal) => Promise<void>;
}

/** Where a stream goes. */
export interface StreamTarget extends SocketAddress {
  readonly isRtp: boolean;
}

/** The caller of a tuner. */
export interface TunerUser {
  /** IPv4 address. */
  readonly host: string;
  /** Key that the request carries; 0: none. */
  readonly lockKey: number;
}

interface Tuner {
  /** As it was set. */
  channel: string;
  multiplex: Multiplex | null;
  /** What is chosen of it; null: nothing yet. */
  entry: LineupEntry | null;
  target: StreamTarget | null;
  lock: TunerUser | null;
  sending: AbortController | null;
  /** Why nothing is sent; empty: nothing speaks against it. */
  trouble: string;
  idle: Timer | null;
}

/** All tuners. */
export class Tuners {
  readonly #parts: TunersParts;
  readonly #tuners: readonly Tuner[] = Array.from({ length: TUNERS }, () => ({
    channel: NONE,
    multiplex: null,
    entry: null,
    target: null,
    lock: null,
    sending: null,
    trouble: "",
    idle: null,
  }));
  #divided: { readonly lineup: readonly LineupEntry[]; readonly multiplexes: readonly Multiplex[] } | null = null;

  constructor(parts: TunersParts) {
    this.#parts = parts;
  }

  /** The value of a variable. Rejects with `not_found`. */
  async get(name: string): Promise<string> {
    const device = DEVICE[name];
    if (device !== undefined) return device;
    const [, tuner, what] = this.#named(name);
    const { channel, multiplex, entry, target, lock, trouble, sending } = tuner;
    switch (what) {
      case "channel":
        return channel;
      case "channelmap":
        return CHANNEL_MAP;
      case "status":
        return `ch=${channel} ${entry !== null || multiplex !== null ? LOCKED : UNLOCKED} bps=0 pps=0`;
      case "vstatus":
        return `vch=${entry?.number ?? NONE} name=${entry?.title ?? NONE} auth=unspecified cci=none cgms=none`;
      case "streaminfo":
        return multiplex?.info ?? NONE;
      case "program":
        return entry === null || multiplex === null ? NONE : String(multiplex.entries.indexOf(entry) + 1);
      case "vchannel":
        return entry?.number ?? NONE;
      case "filter":
        return "0x0000-0x1FFF";
      case "target":
        return target === null ? NONE : `${target.isRtp ? "rtp" : "udp"}://${target.host}:${target.port}`;
      case "lockkey":
        return lock?.host ?? NONE;
      case "debug":
        return `tun: ch=${channel}\nnet: ${sending !== null ? "sends" : trouble === "" ? "idle" : trouble}\n`;
      default:
        return await Promise.reject(unknown());
    }
  }

  /** Sets a variable. Rejects with `not_found`, `invalid_argument`, and `conflict` for a tuner that another has locked. */
  async set(name: string, value: string, user: TunerUser): Promise<void> {
    if (DEVICE[name] !== undefined) throw new MillraceError("denied", "this cannot be changed");
    const [number, tuner, what] = this.#named(name);
    const isForced = what === "lockkey" && value === "force";
    if (tuner.lock !== null && tuner.lock.lockKey !== user.lockKey && !isForced) {
      throw new MillraceError("conflict", `tuner ${number} is locked by ${tuner.lock.host}`);
    }
    if (what === "lockkey") lock(tuner, value, user);
    else if (what === "channel") this.#tune(tuner, value, await this.#multiplexes());
    else if (what === "vchannel") await this.#choose(tuner, value);
    else if (what === "program") this.#chooseProgram(tuner, value, number);
    else if (what === "target") this.#aim(tuner, value, user, number);
    else if (what === "channelmap" && value === CHANNEL_MAP) return;
    else if (what === "channelmap") throw invalid(`this tuner has the channel map ${CHANNEL_MAP} alone`);
    else if (what === "filter") throw invalid("programs are sent whole: their packets cannot be filtered");
    else throw unknown();
    this.#restartIdle(tuner);
  }

  /** Notes that a machine is still there. */
  seen(host: string): void {
    for (const tuner of this.#tuners) {
      if (tuner.target?.host === host || tuner.lock?.host === host) this.#restartIdle(tuner);
    }
  }

  /** Ends all streams. */
  close(): void {
    for (const tuner of this.#tuners) this.#release(tuner);
  }

  #named(name: string): [number: number, tuner: Tuner, what: string] {
    const [, digit, what] = /^\/tuner(\d)\/([a-z]{1,20})$/.exec(name) ?? [];
    const tuner = digit === undefined ? undefined : this.#tuners[Number(digit)];
    if (tuner === undefined) throw unknown();
    return [Number(digit), tuner, what!];
  }

  async #multiplexes(): Promise<readonly Multiplex[]> {
    const lineup = await this.#parts.lineup();
    if (this.#divided?.lineup !== lineup) this.#divided = { lineup, multiplexes: multiplexesOf(lineup) };
    return this.#divided.multiplexes;
  }

  #tune(tuner: Tuner, channel: string, multiplexes: readonly Multiplex[]): void {
    const multiplex = channel === NONE ? null : tunedTo(channel, multiplexes);
    if (multiplex === undefined) throw invalid(`a channel is named as in ${CHANNEL_MAP}:14 or auto:473000000`);
    tuner.channel = channel;
    tuner.multiplex = multiplex;
    tuner.entry = multiplex?.entries.length === 1 ? multiplex.entries[0]! : null;
    this.#play(tuner);
  }

  async #choose(tuner: Tuner, number: string): Promise<void> {
    const entry = number === NONE ? null : (await this.#parts.lineup()).find((one) => one.number === number);
    if (entry === undefined) throw invalid("no channel has this number: see /lineup.json");
    const multiplex = entry === null
      ? null
      : (await this.#multiplexes()).find(({ entries }) => entries.includes(entry)) ?? null;
    tuner.channel = entry === null ? NONE : multiplex === null ? `auto:${number}` : `auto:${multiplex.frequencyHz}`;
    tuner.multiplex = multiplex;
    tuner.entry = entry;
    this.#play(tuner);
  }

  #chooseProgram(tuner: Tuner, value: string, number: number): void {
    const isNone = value === NONE || value === "0";
    const entry = isNone ? null : tuner.multiplex?.entries[Number(value) - 1];
    if (entry === undefined) throw invalid(`no program has this number: see /tuner${number}/streaminfo`);
    tuner.entry = entry;
    this.#play(tuner);
  }

  #aim(tuner: Tuner, value: string, { host }: TunerUser, number: number): void {
    const [, kind, to, port] = /^(rtp|udp):\/\/(\d[\d.]{6,14}):(\d{1,5})$/.exec(value) ?? [];
    if (value !== NONE && kind === undefined) throw invalid("a target is named as in rtp://192.168.1.10:5000");
    // Anything else would let a stranger send a stream to whomever they like.
    if (to !== undefined && to !== host) throw invalid("a stream is sent only to the machine that asks for it");
    if (port !== undefined && (Number(port) < LEAST_PORT || Number(port) > 65_535)) {
      throw invalid(`the port of a target is from ${LEAST_PORT} to 65535`);
    }
    if (kind !== undefined && tuner.entry === null) {
      throw invalid(`set /tuner${number}/channel and program first: see /tuner${number}/streaminfo`);
    }
    tuner.target = kind === undefined ? null : { host, port: Number(port), isRtp: kind === "rtp" };
    this.#play(tuner);
  }

  /** Sends what is chosen to the target, or nothing. */
  #play(tuner: Tuner): void {
    tuner.sending?.abort(new MillraceError("aborted", "the tuner was set to something else"));
    tuner.sending = null;
    tuner.trouble = "";
    const { entry, target } = tuner;
    if (entry === null || target === null) return;
    const sending = tuner.sending = new AbortController();
    const ended = (error?: unknown) => {
      if (sending.signal.aborted) return;
      tuner.sending = null;
      tuner.trouble = error === undefined
        ? "the stream has ended"
        : error instanceof MillraceError
        ? error.message
        : "failed";
      if (error !== undefined && !hasCode(error, "aborted")) {
        logFailure(this.#parts.log, "debug", "a tuner sends nothing", error, { channel: entry.number });
      }
    };
    this.#parts.send(entry.number, target, sending.signal).then(() => ended(), ended);
  }

  #restartIdle(tuner: Tuner): void {
    tuner.idle?.cancel();
    const { clock, log } = this.#parts;
    const failed = (error: unknown) => logFailure(log, "error", "a tuner was not released", error);
    tuner.idle = tuner.target === null && tuner.lock === null
      ? null
      : clock.setTimeout(guarded(() => this.#release(tuner), failed), IDLE_MS);
  }

  #release(tuner: Tuner): void {
    tuner.idle?.cancel();
    tuner.idle = null;
    tuner.lock = null;
    tuner.target = null;
    this.#play(tuner);
  }
}

const LOCKED = "lock=8vsb ss=100 snq=100 seq=100";
const UNLOCKED = "lock=none ss=0 snq=0 seq=0";

/** What is asked about the device, and never changes. */
const DEVICE: Readonly<Record<string, string>> = {
  help: [
    "Variables:",
    ...["sys/model", "sys/hwmodel", "sys/version", "sys/features"].map((name) => `/${name}`),
    ...["channel", "channelmap", "program", "vchannel", "target", "lockkey"].map((name) => `/tuner<n>/${name} <value>`),
    ...["status", "vstatus", "streaminfo", "filter", "debug"].map((name) => `/tuner<n>/${name}`),
    "",
  ].join("\n"),
  "/sys/model": FIRMWARE,
  "/sys/hwmodel": MODEL,
  "/sys/version": FIRMWARE_VERSION,
  "/sys/features": `channelmap: ${CHANNEL_MAP}\nmodulation: 8vsb\nauto-modulation: auto\n`,
};

function lock(tuner: Tuner, value: string, user: TunerUser): void {
  if (value === NONE || value === "force") return void (tuner.lock = null);
  const lockKey = /^\d{1,10}$/.test(value) ? Number(value) : 0;
  if (lockKey === 0 || lockKey > 0xffff_ffff) throw invalid("a key is a number from 1 to 4294967295, or none or force");
  tuner.lock = { ...user, lockKey };
}

function unknown(): MillraceError {
  return new MillraceError("not_found", "no variable has this name: get help lists them");
}

function invalid(message: string): MillraceError {
  return new MillraceError("invalid_argument", message);
}
