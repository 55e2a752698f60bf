/**
 * The memory that indexes of media files take, over all sessions. One index is bounded, but a caller that starts
 * sessions on many files with the largest ones would take that many times as much.
 */
import { MillraceError } from "../errors.ts";
import type { MemoryAccount } from "../media/source/work.ts";
import { type ShareHolder, Shares } from "../bytes/shares.ts";

const MIB = 1024 * 1024;

/**
 * Bytes of indexes at once, including those that are being read. The index of a two-hour film takes 5 MiB, and twice
 * that while it is read: a household behind one address has sixteen of them open.
 */
export const INDEX_LIMITS = { total: 256 * MIB, reserved: 160 * MIB, page: 64 * MIB, other: 80 * MIB };

/** One for all presentations of an engine. */
export class IndexMemory {
  readonly #shares = new Shares(INDEX_LIMITS);
  readonly #makeRoom: () => boolean;

  /** `makeRoom` frees unused indexes, some at each call; false when there is none left. */
  constructor(makeRoom: () => boolean) {
    this.#makeRoom = makeRoom;
  }

  /** Bytes that are held now. */
  get heldBytes(): number {
    return this.#shares.total;
  }

  /** The account of `holder`: its `take` throws `too_busy` when there is no room. */
  accountOf(holder: ShareHolder): MemoryAccount {
    return {
      take: (bytes) => {
        while (this.#shares.shortage(holder, bytes) !== null) {
          if (this.#makeRoom()) continue;
          throw new MillraceError(
            "too_busy",
            "too many large media files are open: try again when the playback of another one has ended",
          );
        }
        this.#shares.take(holder, bytes);
      },
      giveBack: (bytes) => this.#shares.giveBack(holder, bytes),
    };
  }
}
