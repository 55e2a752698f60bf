/** The contents of an extended M3U list. There is no standard: these are the directives that real lists carry. */

/** The `#EXTM3U` line. */
export interface M3uHeader {
  /** Attributes by lower-case name: `url-tvg`, `x-tvg-url`, `tvg-shift`, `catchup`, … */
  readonly attributes: Readonly<Record<string, string>>;
}

/** One entry: its address and the lines between the previous address and its own. */
export interface M3uEntry {
  /** Absolute URL or a bare content id, as written in the list. */
  readonly url: string;
  /** Name after the comma of `#EXTINF`, else made from the address. */
  readonly title: string;
  /** Seconds, to the millisecond; -1: unknown or endless. */
  readonly durationSeconds: number;
  /** Attributes of `#EXTINF` by lower-case name: `tvg-id`, `tvg-logo`, `group-title`, `catchup-source`, … */
  readonly attributes: Readonly<Record<string, string>>;
  /** The last `#EXTGRP` before its address; empty when absent. */
  readonly group: string;
  /** Other directives of the entry (`#EXTVLCOPT:…`, `#KODIPROP:…`, `#EXTIMG:…`), whole lines in their order. */
  readonly directives: readonly string[];
}

/** A line that could not be used. */
export interface M3uLineError {
  /** From 1. */
  readonly line: number;
  readonly message: string;
}

/** An event that the reader yields, in the order of the list. */
export type M3uEvent =
  | { readonly kind: "header"; readonly header: M3uHeader }
  | { readonly kind: "entry"; readonly line: number; readonly entry: M3uEntry }
  | { readonly kind: "error"; readonly error: M3uLineError };

/** Bounds of one list. */
export interface M3uLimits {
  /** Bytes received, packed or not. Default 64 MiB. */
  readonly maxBytes?: number;
  /** Bytes after unpacking. Default 256 MiB: 800,000 entries; memory does not grow with it. */
  readonly maxUnpackedBytes?: number;
  /** True when one layer of gzip was undone on the way; another is refused. Default false. */
  readonly isUnpacked?: boolean;
  /** Default 256 KiB: some headers name hundreds of guides. Longer lines are errors. */
  readonly maxLineBytes?: number;
  /** Default 500,000. The rest is left out with one error. */
  readonly maxEntries?: number;
}
