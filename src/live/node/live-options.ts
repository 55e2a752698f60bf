/** Options of a live node. */
import type { Clock } from "../../ports.ts";
import type { PieceHeader } from "../header.ts";
import type { LiveVerifier } from "../signer.ts";

/** What a node needs. */
export interface LiveNodeOptions {
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly verifier: LiveVerifier;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly role: "source" | "viewer";
  /** As in the transport file. */
  readonly stream: {
    readonly pieceLengthBytes: number;
    readonly bytesPerS: number;
    readonly substreams: number;
    readonly windowS: number;
  };
  /** Uplink, bytes a second: the user's limit, or a first guess that measuring corrects. */
  readonly uplinkBytesPerS: number;
  /** A piece is complete. */
  readonly onPiece?: (header: PieceHeader) => void;
}
