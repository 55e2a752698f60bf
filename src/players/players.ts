/** All players within reach, and which callers may use them: "Players" of section 4.4 of the HTTP API. */
import { deadline } from "../bytes/deadline.ts";
import { logFailure } from "../bytes/guarded-clock.ts";
import { MillraceError } from "../errors.ts";
import type { Clock, Logger } from "../ports.ts";
import type {
  Player,
  PlayerCaller,
  PlayerCommand,
  PlayerDevice,
  PlayerFinder,
  PlayerStatus,
  PlayerStream,
  StartStream,
} from "./player-device.ts";

/** Deadline for a player to show a stream, ms: a program starts, opens a window and fills its buffers. */
const PLAY_TIMEOUT_MS = 60_000;
/** Deadline for a player to take a command or report its state, ms. */
const COMMAND_TIMEOUT_MS = 5000;

/** A running `open`. */
interface Opening {
  /** Aborts it in favour of another. */
  readonly giveWay: AbortController;
  readonly over: Promise<void>;
}

/** All players in reach, and the streams they play. */
export class Players {
  readonly #finders: readonly PlayerFinder[];
  readonly #clock: Clock;
  readonly #log: Logger;
  /** The last stream of each player, by player id; as many as there are players. */
  readonly #streams = new Map<string, PlayerStream>();
  readonly #openings = new Map<string, Opening>();

  constructor(finders: readonly PlayerFinder[], { clock, log }: { readonly clock: Clock; readonly log: Logger }) {
    this.#finders = finders;
    this.#clock = clock;
    this.#log = log;
  }

  /** Players that `caller` may use. */
  async list(caller: PlayerCaller): Promise<Player[]> {
    return (await this.#devices()).filter((device) => caller.isLocal || !device.localOnly).map(({ facts }) => facts);
  }

  /**
   * Starts a stream and plays it in the player with this id; resolves when it plays there. A newer call for the same
   * player ends this one (`aborted`). Rejects with `not_found`, `denied`, as `start` does, `unavailable` when the player
   * fails, and `timeout`.
   */
  async open(id: string, caller: PlayerCaller, start: StartStream, signal: AbortSignal): Promise<void> {
    const device = await this.#device(id, caller);
    const before = this.#openings.get(id);
    const giveWay = new AbortController();
    let finish!: () => void;
    const opening: Opening = { giveWay, over: new Promise((resolve) => finish = resolve) };
    this.#openings.set(id, opening);
    before?.giveWay.abort(new MillraceError("aborted", "another stream was opened in the player"));
    try {
      await before?.over;
      await this.#play(device, start, AbortSignal.any([signal, giveWay.signal]));
    } finally {
      if (this.#openings.get(id) === opening) this.#openings.delete(id);
      finish();
    }
  }

  /** The player's state. Rejects with `not_found` and `denied`, `unavailable` when it does not report it, and `timeout`. */
  async status(id: string, caller: PlayerCaller, signal: AbortSignal): Promise<PlayerStatus> {
    const device = await this.#device(id, caller);
    return await this.#timed(COMMAND_TIMEOUT_MS, signal, (late) => device.status(late));
  }

  /**
   * Sends a command to a playing player.
   *
   * @throws `not_found`, `denied`, `unavailable`, `timeout`: as `status`; and with `conflict` when it plays nothing
   */
  async control(id: string, caller: PlayerCaller, command: PlayerCommand, signal: AbortSignal): Promise<void> {
    const device = await this.#device(id, caller);
    await this.#timed(COMMAND_TIMEOUT_MS, signal, (late) => device.control(command, late));
    if (command.kind !== "stop") return;
    this.#streams.get(id)?.stop();
    this.#streams.delete(id);
  }

  /**
   * Sets a player's volume, 0–100.
   *
   * @throws `not_found`, `denied`, `unavailable`, `timeout`, `conflict`: as `control`; and with `unavailable` if it
   * cannot be set
   */
  async setVolume(id: string, caller: PlayerCaller, percent: number, signal: AbortSignal): Promise<void> {
    const device = await this.#device(id, caller);
    await this.#timed(COMMAND_TIMEOUT_MS, signal, async (late) => {
      if (device.setVolume === undefined) {
        throw new MillraceError("unavailable", `the volume of ${device.facts.name} is set on the player itself`);
      }
      await device.setVolume(percent, late);
    });
  }

  /** Aborts running calls and releases all players. */
  async close(): Promise<void> {
    const reason = new MillraceError("closed", "the engine is closing");
    for (const { giveWay } of this.#openings.values()) giveWay.abort(reason);
    await Promise.all(this.#finders.map((finder) => finder.close()));
  }

  async #play(device: PlayerDevice, start: StartStream, signal: AbortSignal): Promise<void> {
    const { id } = device.facts;
    const stream = await start(device, signal);
    const before = this.#streams.get(id);
    try {
      await this.#timed(PLAY_TIMEOUT_MS, signal, (late) => device.open(stream, late), () => {
        const why = stream.trouble();
        return `${device.facts.name} did not begin to play in time${why === null ? "" : `: ${why}`}`;
      });
    } catch (error) {
      // The player did not take the new stream: stop that, unless it is the one that played before.
      if (before?.id !== stream.id) stream.stop();
      throw error;
    }
    if (before !== undefined && before.id !== stream.id) before.stop();
    this.#streams.set(id, stream);
  }

  async #timed<T>(
    timeoutMs: number,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
    says: () => string = () => "the player did not respond in time",
  ): Promise<T> {
    const late = deadline(this.#clock, timeoutMs, signal, () => new MillraceError("timeout", says()));
    try {
      return await work(late.signal);
    } finally {
      late.cancel();
    }
  }

  async #device(id: string, caller: PlayerCaller): Promise<PlayerDevice> {
    const device = await this.#find(id);
    if (device === null) {
      throw new MillraceError("not_found", "no player with this player_id is within reach; see get_available_players");
    }
    if (device.localOnly && !caller.isLocal) {
      throw new MillraceError("denied", "access denied: only callers on the engine's own machine use this player");
    }
    return device;
  }

  /** Asks one finder after the other; those that need no search come first, so that their players never wait for one. */
  async #find(id: string): Promise<PlayerDevice | null> {
    for (const finder of this.#finders) {
      const device = (await this.#listOf(finder)).find(({ facts }) => facts.id === id);
      if (device !== undefined) return device;
    }
    return null;
  }

  async #devices(): Promise<PlayerDevice[]> {
    return (await Promise.all(this.#finders.map((finder) => this.#listOf(finder)))).flat();
  }

  /** A fault in looking for one kind must not hide all others. */
  async #listOf(finder: PlayerFinder): Promise<readonly PlayerDevice[]> {
    try {
      return await finder.list();
    } catch (error) {
      logFailure(this.#log, "warn", "some players could not be looked for", error);
      return [];
    }
  }
}
