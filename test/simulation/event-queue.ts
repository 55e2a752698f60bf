/** Virtual time: callbacks in order of time, ties in order of scheduling, so that a run is the same everywhere. */
interface Event {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

export class EventQueue {
  nowMs = 0;
  readonly #heap: Event[] = [];
  #count = 0;

  /** Runs `run` at `atMs` (now when that is past). */
  at(atMs: number, run: () => void): void {
    const heap = this.#heap;
    heap.push({ atMs: Math.max(atMs, this.nowMs), order: this.#count++, run });
    for (let i = heap.length - 1; i > 0;) {
      const parent = (i - 1) >> 1;
      if (!before(heap[i]!, heap[parent]!)) break;
      [heap[i], heap[parent]] = [heap[parent]!, heap[i]!];
      i = parent;
    }
  }

  after(delayMs: number, run: () => void): void {
    this.at(this.nowMs + delayMs, run);
  }

  /** Runs events until `untilMs` or until `done` holds; returns whether `done` did. */
  run(untilMs: number, done: () => boolean = () => false): boolean {
    while (this.#heap.length > 0 && this.#heap[0]!.atMs <= untilMs) {
      if (done()) return true;
      const event = this.#pop();
      this.nowMs = event.atMs;
      event.run();
    }
    if (done()) return true;
    this.nowMs = Math.max(this.nowMs, untilMs);
    return false;
  }

  #pop(): Event {
    const heap = this.#heap;
    const top = heap[0]!;
    const last = heap.pop()!;
    if (heap.length > 0) {
      heap[0] = last;
      for (let i = 0;;) {
        let least = i;
        for (const child of [2 * i + 1, 2 * i + 2]) {
          if (child < heap.length && before(heap[child]!, heap[least]!)) least = child;
        }
        if (least === i) break;
        [heap[i], heap[least]] = [heap[least]!, heap[i]!];
        i = least;
      }
    }
    return top;
  }
}

function before(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** Seeded generator (xorshift32), uniform in [0, 1). */
export function seededRandom(seed: number): () => number {
  let state = (seed * 2654435761) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 4294967296;
  };
}
