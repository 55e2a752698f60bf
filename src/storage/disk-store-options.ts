/** Settings of one torrent's store on disk. */

/** Options of a store. */
export interface DiskStoreOptions {
  /** Null: nothing is remembered (the user's own files). */
  readonly resumePath: string | null;
  /** `put` is rejected. */
  readonly readOnly: boolean;
  /** Called once, when the store is closed. */
  readonly onClosed: () => void;
}
