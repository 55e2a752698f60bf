/** Where the pieces of a torrent come from, as its data path sees them: peers and web seeds, by number. */
import type { Suspect } from "./evidence.ts";
import type { SchedulerActions } from "../scheduler/types.ts";

/** What scheduler, verifier and retrials may ask of sources. A number that is no longer in use is ignored. */
export interface Sources extends SchedulerActions {
  /** Whether this peer can be asked for the piece now: it is connected, has the piece and does not choke us. */
  canAsk(source: number, piece: number): boolean;
  /** The suspect for a source, even after it left. */
  suspect(source: number): Suspect | undefined;
  /** Its data in this piece was corrupt: bans it, or what it sends of that file. */
  convict(suspect: Suspect, piece: number): void;
  /** Stops reading from peers, because arrived data waits to be hashed and written, or resumes. */
  setCongested(value: boolean): void;
  /** Has every peer report the bytes of its unfinished block to the scheduler. */
  reportProgress(nowMs: number): void;
}
