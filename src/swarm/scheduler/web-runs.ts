/** What web seeds fetch: they are sent no requests, but ask for runs of blocks. */
import type { Core } from "./core.ts";
import type { Dispatch } from "./dispatch.ts";
import type { ActivePiece, BlockRequest, PeerState } from "./peer-state.ts";
import type { Picker } from "./picker.ts";
import { BLOCK_FREE } from "./pieces.ts";
import type { BlockRun, Millis, WebRunsApi } from "./types.ts";

/** The scheduler's side of web seeds. */
export class WebRuns implements WebRunsApi {
  readonly #core: Core;
  readonly #dispatch: Dispatch;
  readonly #picker: Picker;

  constructor(core: Core, picker: Picker, dispatch: Dispatch) {
    this.#core = core;
    this.#dispatch = dispatch;
    this.#picker = picker;
  }

  reserve(id: number, maxBytes: number, nowMs: Millis): BlockRun | null {
    const core = this.#core;
    const seed = this.#seed(id);
    if (seed === null) return null;
    if (seed.stalled) seed.restart();
    core.pool.survey(nowMs);
    const picker = this.#picker;
    if (!picker.pick(seed, seed.etaMs(core.pool.unknownRate, nowMs), "any", nowMs)) return null;
    return this.#run(seed, picker.part!, picker.block, maxBytes, nowMs);
  }

  #run(seed: PeerState, from: ActivePiece, firstBlock: number, maxBytes: number, nowMs: number): BlockRun {
    const { book } = this.#core;
    const run = { piece: from.piece, offset: firstBlock * book.blockBytes, length: 0 };
    let block = firstBlock;
    for (let part: ActivePiece | null = from; part !== null;) {
      while (block < part.blocks && part.state[block] === BLOCK_FREE && !part.cuts.has(block)) {
        const bytes = book.blockLength(part.piece, block);
        if (run.length > 0 && run.length + bytes > maxBytes) return run;
        book.ask(seed, part, block, nowMs);
        run.length += bytes;
        block++;
      }
      this.#picker.assign(seed, part.piece);
      // After a piece that ends with its file comes nothing that a server has.
      const isEnd: boolean = block < part.blocks || book.pieceLength(part.piece) < book.pieceBytes;
      part = isEnd ? null : this.#picker.following(seed, part.piece, nowMs);
      block = 0;
    }
    return run;
  }

  reserveBlock(id: number, piece: number, offset: number, nowMs: Millis): boolean {
    const { book } = this.#core;
    const seed = this.#seed(id);
    if (seed === null || !seed.offers(piece, nowMs) || !book.isOpen(piece) || book.failed.has(piece)) return false;
    const part = this.#core.start(piece);
    const block = offset / book.blockBytes;
    if (part.state[block] !== BLOCK_FREE || part.cuts.has(block)) return false;
    book.ask(seed, part, block, nowMs);
    return true;
  }

  giveBack(id: number, run: BlockRun, nowMs: Millis): void {
    const seed = this.#seed(id);
    if (seed === null) return;
    this.#core.releaseAll(seed, false, (request) => this.#isPart(request, run));
    this.#dispatch.all(nowMs);
  }

  isWanted(id: number, run: BlockRun): boolean {
    for (let request = this.#seed(id)?.oldest ?? null; request !== null; request = request.newer) {
      if (this.#isPart(request, run)) return true;
    }
    return false;
  }

  #isPart({ part, block }: BlockRequest, { piece, offset, length }: BlockRun): boolean {
    const { book } = this.#core;
    const from = (part.piece - piece) * book.pieceBytes + block * book.blockBytes - offset;
    return from >= 0 && from < length;
  }

  #seed(id: number): PeerState | null {
    const seed = this.#core.peers.get(id);
    return seed?.isWebSeed === true ? seed : null;
  }
}
