/** The stream of a simulated broadcast, piece by piece. */
import { PACKET_BYTES } from "../../src/bytes/ts/packet.ts";
import { streamShape } from "../../src/live/broadcast/stream-shape.ts";
import type { LiveScenario } from "./live-scenario.ts";

const GROUP_MS = 1000;
/** A black picture and silence, in pieces that are sent before they are full. */
const SLATE_BYTES_PER_S = 18_000;
const SLATE_PIECE_MS = 500;

/** A piece before it has a number. */
export interface StreamPiece {
  readonly lengthBytes: number;
  readonly lastsMs: number;
  /** A random access point is inside. */
  readonly isAccess: boolean;
}

/** What the source of one scenario broadcasts. */
export class LiveStream {
  readonly bytesPerS: number;
  /** What the transport file says of it. */
  readonly announced;
  /** How long a full piece lasts, ms. */
  readonly pieceMs: number;
  readonly #pieceBytes: number;
  readonly #slateMs: number;
  readonly #groupMs: number;

  constructor({ bytesPerS = 250_000, toldShare = 1, slateS = 0, groupMs = GROUP_MS }: LiveScenario) {
    this.bytesPerS = bytesPerS;
    const toldBytesPerS = toldShare * bytesPerS;
    this.announced = { ...streamShape(toldBytesPerS), bytesPerS: toldBytesPerS, windowS: 30 };
    const { pieceLengthBytes } = this.announced;
    this.#pieceBytes = pieceLengthBytes - pieceLengthBytes % PACKET_BYTES;
    this.pieceMs = this.#pieceBytes / bytesPerS * 1000;
    this.#slateMs = 1000 * slateS;
    this.#groupMs = groupMs;
  }

  /** The piece that begins `mediaMs` after the start. */
  piece(mediaMs: number): StreamPiece {
    const isSlate = mediaMs < this.#slateMs;
    const lastsMs = isSlate ? SLATE_PIECE_MS : this.pieceMs;
    return {
      lengthBytes: isSlate ? SLATE_BYTES_PER_S * SLATE_PIECE_MS / 1000 : this.#pieceBytes,
      lastsMs,
      isAccess: Math.floor(mediaMs / this.#groupMs) !== Math.floor((mediaMs - lastsMs) / this.#groupMs),
    };
  }
}
