/** Players without a screen, for tests. */
import type { MillraceError } from "../../src/errors.ts";
import type {
  PlayerCommand,
  PlayerDevice,
  PlayerFinder,
  PlayerStatus,
  PlayerStream,
} from "../../src/players/player-device.ts";

/** A player that records its commands. */
export class RememberingPlayer implements PlayerDevice {
  readonly facts;
  readonly localOnly: boolean;
  readonly output = "file";
  readonly host = null;
  readonly opened: PlayerStream[] = [];
  readonly commands: PlayerCommand[] = [];
  /** If set, `open` rejects with it. */
  refusal: MillraceError | null = null;
  /** Set: `open` waits for it, or for the signal. */
  hold: Promise<void> | null = null;
  now: PlayerStatus = { state: "idle", positionSeconds: null, durationSeconds: null };

  constructor(id: string, { localOnly = false } = {}) {
    this.facts = { id, type: "proxy", protocol: null, name: `Player ${id}`, icon: null } as const;
    this.localOnly = localOnly;
  }

  async open(stream: PlayerStream, signal: AbortSignal): Promise<void> {
    this.opened.push(stream);
    if (this.hold !== null) {
      await new Promise<void>((resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        void this.hold!.then(resolve);
      });
    }
    if (this.refusal !== null) throw this.refusal;
  }

  status(): Promise<PlayerStatus> {
    return Promise.resolve(this.now);
  }

  control(command: PlayerCommand): Promise<void> {
    this.commands.push(command);
    return Promise.resolve();
  }
}

/** A finder of players that are always there. */
export class Shelf implements PlayerFinder {
  readonly #players: readonly PlayerDevice[];
  closed = 0;

  constructor(...players: PlayerDevice[]) {
    this.#players = players;
  }

  list(): Promise<readonly PlayerDevice[]> {
    return Promise.resolve(this.#players);
  }

  close(): Promise<void> {
    this.closed++;
    return Promise.resolve();
  }
}

/** A stream of this id that remembers how often it was stopped. */
export class FakeStream implements PlayerStream {
  readonly id: string;
  readonly title = "A film";
  readonly isLive = false;
  stops = 0;
  reason: string | null = null;

  constructor(id: string) {
    this.id = id;
  }

  get url(): string {
    return `http://127.0.0.1:6878/engine/f/x/${this.id}/film.mkv`;
  }

  ready(): Promise<void> {
    return Promise.resolve();
  }

  trouble(): string | null {
    return this.reason;
  }

  stop(): void {
    this.stops++;
  }
}
