/** Notices settings that another engine on the same database server changed. */
import type { SettingsStore } from "../account/settings.ts";
import type { AccessPolicy } from "../http/address.ts";
import type { Clock, Logger, Timer } from "../ports.ts";

/** Time between two looks, ms: a change is in force everywhere within 2 s, at one short query per engine and look. */
const LOOK_EVERY_MS = 1000;

/** Looks at the settings again and again, and applies what changed. While the server is away the last known ones hold. */
export class SettingsWatch {
  readonly #parts: {
    readonly settings: SettingsStore;
    readonly policy: Pick<AccessPolicy, "setAllowed">;
    readonly clock: Clock;
    readonly log: Pick<Logger, "log">;
  };
  #timer: Timer | null = null;
  #looking: Promise<void> = Promise.resolve();
  #isClosed = false;
  #isAway = false;
  /** Grows with each change by a caller of this engine: a look that began before it has seen an older value. */
  #changes = 0;

  constructor(parts: {
    readonly settings: SettingsStore;
    readonly policy: Pick<AccessPolicy, "setAllowed">;
    readonly clock: Clock;
    readonly log: Pick<Logger, "log">;
  }) {
    this.#parts = parts;
    this.#later();
  }

  /** The settings for the callers of this engine. */
  get settings(): SettingsStore {
    const { settings } = this.#parts;
    return {
      load: () => settings.load(),
      set: async (name, value) => {
        this.#changes++;
        try {
          await settings.set(name, value);
        } finally {
          this.#changes++;
        }
      },
    };
  }

  /** Resolves when the look under way has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#looking;
  }

  #later(): void {
    if (this.#isClosed) return;
    this.#timer = this.#parts.clock.setTimeout(() => {
      this.#looking = this.#look().finally(() => this.#later());
    }, LOOK_EVERY_MS);
  }

  async #look(): Promise<void> {
    const { settings, policy, log } = this.#parts;
    const before = this.#changes;
    try {
      const { allow_intranet, allow_internet } = await settings.load();
      if (this.#isAway) log.log("info", "the database server responds again");
      this.#isAway = false;
      if (this.#changes !== before || this.#isClosed) return;
      if (allow_intranet !== undefined) policy.setAllowed("intranet", allow_intranet);
      if (allow_internet !== undefined) policy.setAllowed("internet", allow_internet);
    } catch (error) {
      if (!this.#isAway) {
        log.log("warn", "the database server does not respond; the last known settings hold", { error });
      }
      this.#isAway = true;
    }
  }
}
