/** Plays streams of other engines in a player of this one, if the user allowed those engines. */
import { Allowances } from "../../bytes/allowance.ts";
import { MillraceError } from "../../errors.ts";
import type { Clock } from "../../ports.ts";
import type { Players } from "../players.ts";
import { IDLE, type PlayerDevice, type PlayerFinder, type PlayerStatus } from "../player-device.ts";
import { CAST_COMMAND, CAST_HELLO, type CastCommand, helloText } from "./cast-command.ts";
import { type CastIdentity, isSignedBy, randomNonce } from "./cast-identity.ts";
import type { CastRelay } from "./cast-relay.ts";
import type { CastSenders } from "./cast-senders.ts";

/** Lifetime of a nonce, ms. */
const NONCE_MS = 30_000;
/** Most valid nonces in all, and of one machine: a sender uses each right away. */
const MAX_NONCES = 64;
const MAX_NONCES_PER_HOST = 8;
/** First steps per second and machine, and how many may accumulate: each costs a signature. Each command needs one. */
const HELLOS_PER_SECOND = 4;
const HELLOS_AT_ONCE = 20;
const MAX_HOSTS = 256;
/** Longest title shown, characters. */
const MAX_TITLE_CHARS = 200;
/** The sender acts for the user of this machine, who allowed it. */
const ALLOWED = { isLocal: true };

/** What the receiver needs. */
export interface CastReceiverParts {
  readonly identity: CastIdentity;
  readonly senders: CastSenders;
  readonly players: Players;
  /** Players to choose from, in order of preference: those found without a search. Pages read streams through `relay`. */
  readonly choices: readonly PlayerFinder[];
  readonly relay: CastRelay;
  /** Id of the player that the user chose; null: the first one. */
  readonly playerId: string | null;
  readonly clock: Clock;
}

/** The receiving side of casting. */
export class CastReceiver {
  readonly #parts: CastReceiverParts;
  readonly #nonces = new Map<string, { readonly host: string; readonly expiresMs: number }>();
  readonly #hellos: Allowances;
  /** The last stream opened for another engine, as long as it is in its player. */
  #current: { readonly sender: string; readonly playerId: string } | null = null;

  constructor(parts: CastReceiverParts) {
    this.#parts = parts;
    this.#hellos = new Allowances({
      perSecond: HELLOS_PER_SECOND,
      most: HELLOS_AT_ONCE,
      limit: MAX_HOSTS,
      nowMs: () => parts.clock.monotonic(),
    });
  }

  /** The output read by the player for streams of other engines; null when there is no such player. */
  async output(): Promise<"file" | "hls" | null> {
    const { output } = await this.#player() ?? {};
    return output === "file" || output === "hls" ? output : null;
  }

  /** Passes streams on to pages. */
  get relay(): CastRelay {
    return this.#parts.relay;
  }

  /** Handles the first step, a request from `host` to our address `at`. Throws `invalid_argument` and `too_busy`. */
  async hello(host: string, at: string, body: string): Promise<{ readonly nonce: string; readonly signature: string }> {
    const { challenge } = read(CAST_HELLO, body);
    const nowMs = this.#parts.clock.monotonic();
    for (const [nonce, { expiresMs }] of this.#nonces) if (expiresMs <= nowMs) this.#nonces.delete(nonce);
    const unused = [...this.#nonces.values()].filter((nonce) => nonce.host === host).length;
    if (!this.#hellos.take(host) || this.#nonces.size >= MAX_NONCES || unused >= MAX_NONCES_PER_HOST) {
      throw new MillraceError("too_busy", "too many requests of other engines at once: try again in a minute");
    }
    const nonce = randomNonce();
    this.#nonces.set(nonce, { host, expiresMs: nowMs + NONCE_MS });
    const { identity } = this.#parts;
    return { nonce, signature: await identity.sign("hello", identity.key, helloText(challenge, nonce, at)) };
  }

  /**
   * Handles the second step, a command from `host`. Throws `invalid_argument`, `denied` when it is not signed, was used
   * before, or the sender is not allowed yet, and as the player does.
   */
  async command(host: string, body: string, signature: string, signal: AbortSignal): Promise<PlayerStatus> {
    const command = read(CAST_COMMAND, body);
    const { identity, senders, clock } = this.#parts;
    const nonce = this.#nonces.get(command.nonce);
    // A nonce is used up whether or not the command succeeds.
    this.#nonces.delete(command.nonce);
    const isFresh = nonce !== undefined && nonce.host === host && nonce.expiresMs > clock.monotonic();
    if (!isFresh || !await isSignedBy(command.sender, signature, "command", identity.key, body)) {
      throw new MillraceError("denied", "access denied: the request is not signed for this engine, or is an old one");
    }
    if (!senders.isAllowed(command.sender)) {
      const name = command.name.replace(/\p{C}/gu, " ").trim();
      if (command.action.kind === "open") senders.ask({ key: command.sender, name }, host);
      throw new MillraceError(
        "denied",
        "access denied: the user of that engine has to allow this one first, in its settings",
      );
    }
    return await this.#run(command, host, signal);
  }

  async #run({ sender, action }: CastCommand, host: string, signal: AbortSignal): Promise<PlayerStatus> {
    if (action.kind === "open") {
      await this.#open(sender, action, host, signal);
      return IDLE;
    }
    const { players } = this.#parts;
    const current = this.#current?.sender === sender ? this.#current : null;
    if (action.kind === "status") {
      return current === null ? IDLE : await players.status(current.playerId, ALLOWED, signal);
    }
    if (current === null) {
      if (action.kind === "stop") return IDLE;
      throw new MillraceError("conflict", "what this engine sent does not play any more");
    }
    await players.control(current.playerId, ALLOWED, action, signal);
    return IDLE;
  }

  async #open(
    sender: string,
    { url, output, title, isLive }: CastCommand["action"] & { readonly kind: "open" },
    host: string,
    signal: AbortSignal,
  ): Promise<void> {
    // A sender must not make this machine fetch from another one.
    if (new URL(url).hostname.replace(/^\[|\]$/g, "") !== host) {
      throw new MillraceError("invalid_argument", "an engine sends streams of its own alone");
    }
    const device = await this.#player();
    if (device === null) {
      throw new MillraceError(
        "unavailable",
        "there is no player on that engine's machine: install mpv or VLC there, or open its web page and let it play",
      );
    }
    if (device.output !== output) {
      throw new MillraceError("unavailable", "another player was chosen there meanwhile: try again in a minute");
    }
    const mine = { sender, playerId: device.facts.id };
    const start = () => {
      const relayed = output === "hls" ? this.#parts.relay.open(new URL(url)) : null;
      return Promise.resolve({
        id: `cast ${relayed?.path ?? url}`,
        url,
        ...(relayed === null ? {} : { path: relayed.path }),
        title: title.replace(/\p{C}/gu, " ").slice(0, MAX_TITLE_CHARS),
        isLive,
        ready: () => Promise.resolve(),
        trouble: () => null,
        stop: () => {
          relayed?.close();
          if (this.#current === mine) this.#current = null;
        },
      });
    };
    await this.#parts.players.open(device.facts.id, ALLOWED, start, signal);
    this.#current = mine;
  }

  /** The player that the user chose, else the first one present. */
  async #player(): Promise<PlayerDevice | null> {
    const { choices, playerId } = this.#parts;
    for (const finder of choices) {
      for (const device of await finder.list()) {
        if (device.output !== "ts" && (playerId === null || device.facts.id === playerId)) return device;
      }
    }
    return null;
  }
}

function read<T>(schema: { parse(value: unknown): T }, body: string): T {
  try {
    return schema.parse(JSON.parse(body));
  } catch (cause) {
    throw new MillraceError("invalid_argument", "this is no request of an engine", { cause });
  }
}
