/** What one peer owes: a linked list, oldest request first, because any of them may end at any time. */
import type { RequestAt } from "./active-piece.ts";

/** The requests at one peer. The links between them are written here alone. */
export class RequestQueue<Peer> {
  #oldest: RequestAt<Peer> | null = null;
  #newest: RequestAt<Peer> | null = null;
  #count = 0;
  #strayCount = 0;

  get oldest(): RequestAt<Peer> | null {
    return this.#oldest;
  }

  get count(): number {
    return this.#count;
  }

  /** Requests for what nobody wants any more that can't be called back. */
  get strayCount(): number {
    return this.#strayCount;
  }

  /** Adds the newest request. */
  push(request: RequestAt<Peer>): void {
    request.newer = null;
    request.older = this.#newest;
    if (this.#newest === null) this.#oldest = request;
    else this.#newest.newer = request;
    this.#newest = request;
    this.#count++;
  }

  /** Takes out a request that ended. */
  remove(request: RequestAt<Peer>): void {
    if (request.older === null) this.#oldest = request.newer;
    else request.older.newer = request.newer;
    if (request.newer === null) this.#newest = request.older;
    else request.newer.older = request.older;
    this.#count--;
    if (request.stray) this.#strayCount--;
  }

  /** Nobody wants the request any more; it stays. */
  strand(request: RequestAt<Peer>): void {
    request.stray = true;
    this.#strayCount++;
  }

  /** Numbers the requests by their position. */
  rank(): void {
    let place = 0;
    for (let request = this.#oldest; request !== null; request = request.newer) request.rank = place++;
  }
}
