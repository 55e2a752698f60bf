/** What viewers of a simulated broadcast are like: dealt like cards, so that small swarms have the same mix as large ones. */

/** Up-links in shares of the bitrate, and below which share of the cards. */
const UPLINKS: readonly [number, number][] = [[0.2, 0.2], [1, 0.6], [2, 0.9], [4, 1]];
const CARDS = 20;

/** The part of a scenario that is about this. */
export interface Mix {
  readonly poisoners?: number;
  readonly zeroUpload?: number;
  readonly unmeasured?: boolean;
  readonly closedShare?: number;
  /** Share of those that nobody can connect to whose NATs can be punched. */
  readonly punchableShare?: number;
  readonly uplinkFactor?: number;
  readonly uplinks?: readonly number[];
}

/** The cards of one run. */
export class Dealing {
  readonly #mix: Mix;
  readonly #bytesPerS: number;
  readonly #random: () => number;
  #uplinks: number[] = [];
  #closed: boolean[] = [];
  #punchable: boolean[] = [];

  constructor(mix: Mix, bytesPerS: number, random: () => number) {
    this.#mix = mix;
    this.#bytesPerS = bytesPerS;
    this.#random = random;
  }

  /** The next viewer's up-link, bytes per second, and whether it sends false blocks. */
  uplink(number: number): { rate: number; poisons: boolean } {
    const { poisoners, zeroUpload, unmeasured, uplinkFactor = 1 } = this.#mix;
    const poisons = this.#random() < (poisoners ?? 0);
    const { uplinks } = this.#mix;
    if (uplinks !== undefined) return { rate: uplinks[number % uplinks.length]!, poisons };
    if (unmeasured === true) return { rate: Infinity, poisons };
    if (this.#uplinks.length === 0) this.#uplinks = Array.from({ length: CARDS }, (_, i) => (i + 0.5) / CARDS);
    const card = this.#draw(this.#uplinks);
    if (zeroUpload !== undefined) {
      if (card < zeroUpload) return { rate: 0, poisons };
      return { rate: (this.#random() < 0.6 ? 2 : 4) * this.#bytesPerS, poisons };
    }
    return { rate: uplinkFactor * UPLINKS.find(([, below]) => card < below)![0] * this.#bytesPerS, poisons };
  }

  /** Whether nobody can connect to the next viewer. */
  isClosed(): boolean {
    const { closedShare = 0 } = this.#mix;
    if (closedShare === 0) return false;
    if (this.#closed.length === 0) {
      this.#closed = Array.from({ length: CARDS }, (_, i) => (i + 0.5) / CARDS < closedShare);
    }
    return this.#draw(this.#closed);
  }

  /** Whether the NAT of the next viewer that nobody can connect to can be punched. */
  isPunchable(): boolean {
    const { punchableShare = 0 } = this.#mix;
    if (punchableShare === 0) return false;
    if (this.#punchable.length === 0) {
      this.#punchable = Array.from({ length: CARDS }, (_, i) => (i + 0.5) / CARDS < punchableShare);
    }
    return this.#draw(this.#punchable);
  }

  #draw<T>(cards: T[]): T {
    return cards.splice(Math.floor(this.#random() * cards.length), 1)[0]!;
  }
}
