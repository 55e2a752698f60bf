/** Options of a live node. */
import type { Clock } from "../../ports.ts";
import type { PieceHeader } from "../header.ts";
import type { LiveVerifier } from "../signer.ts";

/** Holds blocks back to keep a limit. Its provider makes the node send again when the gate opens. */
export interface UploadGate {
  /** True when a block may be handed to the network. */
  readonly isOpen: boolean;
}

/** What a node needs. */
export interface LiveNodeOptions {
  readonly clock: Pick<Clock, "now" | "monotonic" | "setTimeout">;
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
  /** The user's limit on the uplink, bytes/s, 0 when nothing may be sent; null without a limit. */
  readonly uplinkBytesPerS: number | null;
  /** Holds blocks back so that the limit is kept. Default: no gate. */
  readonly gate?: UploadGate;
  /** A piece is complete. */
  readonly onPiece?: (header: PieceHeader) => void;
}
