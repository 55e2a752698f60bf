/**
 * Limits how much work callers may cause at once: calls of the API, starts of streams, and memory of request bodies.
 * Strangers have shares, never all of it, so that programs on this machine always get in.
 */
import { MillraceError } from "../errors.ts";
import { type ShareHolder, Shares } from "../bytes/shares.ts";

const MIB = 1024 * 1024;

/** Calls and starts under way at once. Those that wait for peers are held for up to a minute each. */
export const CALL_LIMITS = { total: 256, reserved: 64, page: 4, other: 16 };

/**
 * Bytes of request bodies held in memory at once: three transport files of the largest kind, and one from a stranger.
 */
export const BODY_LIMITS = { total: 64 * MIB, reserved: 24 * MIB, page: 17 * MIB, other: 17 * MIB };

/** A body of this size or more is large, bytes: forms and most transport files are smaller. */
const LARGE_BODY_BYTES = 64 * 1024;

/**
 * Large bodies read at once, including those of undeclared length. A runtime reads ahead of us: up to 2 MB of each, and
 * more if the body comes in chunks of one byte.
 */
export const LARGE_BODY_LIMITS = { total: 8, reserved: 4, page: 2, other: 2 };

/** Ends the admission. Idempotent. */
export type Leave = () => void;

/** The memory of one request's body. */
export interface BodyHold {
  /**
   * Before anything is read: reserves room for a body of `bytes`; null when the size is not known. Even a body that is
   * refused half-way has used its memory. Throws `too_busy`.
   */
  announce(bytes: number | null): void;
  /** `bytes` more arrived. Throws `too_busy` when there is no room for them. */
  add(bytes: number): void;
  /** The body is not needed any more. Idempotent. */
  release(): void;
}

/** One for all routes of an engine. */
export class RequestAdmission {
  readonly #calls = new Shares(CALL_LIMITS);
  readonly #bodies = new Shares(BODY_LIMITS);
  readonly #largeBodies = new Shares(LARGE_BODY_LIMITS);

  /** A call or start of `holder` begins. Throws `too_busy`. */
  enter(holder: ShareHolder): Leave {
    const shortage = this.#calls.shortage(holder);
    if (shortage !== null) {
      const whose = shortage === "total"
        ? ""
        : holder.kind === "page"
        ? " from pages of other sites"
        : " from this address";
      throw new MillraceError("too_busy", `too many calls at once${whose}: try again when one has ended`);
    }
    this.#calls.take(holder);
    let isIn = true;
    return () => {
      if (isIn) this.#calls.giveBack(holder);
      isIn = false;
    };
  }

  /** Room for the body of a request of `holder`, none of which has been read. */
  body(holder: ShareHolder): BodyHold {
    let held = 0;
    let arrived = 0;
    let isLarge = false;
    const refuse = () => new MillraceError("too_busy", "too many large requests at once: try again in a minute");
    const grow = () => {
      if (isLarge) return;
      if (this.#largeBodies.shortage(holder) !== null) throw refuse();
      this.#largeBodies.take(holder);
      isLarge = true;
    };
    const hold = (bytes: number) => {
      if (bytes <= held) return;
      if (this.#bodies.shortage(holder, bytes - held) !== null) throw refuse();
      this.#bodies.take(holder, bytes - held);
      held = bytes;
    };
    return {
      announce: (bytes) => {
        if (bytes === null || bytes > LARGE_BODY_BYTES) grow();
        hold(bytes ?? 0);
      },
      add: (bytes) => {
        arrived += bytes;
        if (arrived > LARGE_BODY_BYTES) grow();
        hold(arrived);
      },
      release: () => {
        this.#bodies.giveBack(holder, held);
        if (isLarge) this.#largeBodies.giveBack(holder);
        held = 0;
        arrived = 0;
        isLarge = false;
      },
    };
  }

  /** Bytes of bodies that are held now. */
  get bodyBytes(): number {
    return this.#bodies.total;
  }
}
