/** External playlists: section 2.9 of the HTTP API. */

/** Content of a list: entries of a `broadcast` list are live unless they say otherwise. */
export type ExternalType = "content" | "broadcast";

/** A list as callers see it, without its password. Times are Unix seconds, 0: never. */
export interface ExternalPlaylist {
  readonly id: number;
  readonly type: ExternalType;
  readonly category: string;
  readonly name: string;
  readonly url: string;
  readonly login: string;
  /** Empty: the engine's own. */
  readonly userAgent: string;
  /** Connections that its provider allows at once; 0: any number. */
  readonly maxConnections: number;
  /** Seconds; 0: updated by hand only. */
  readonly updateInterval: number;
  /** When it was added or last edited. */
  readonly updatedAt: number;
  /** When it was last fetched successfully. */
  readonly lastUpdate: number;
  readonly nextUpdate: number;
  /** Why the last fetch failed; empty when it succeeded. */
  readonly lastError: string;
  /** Its code; empty when it succeeded, or an older release noted the error. */
  readonly lastErrorCode: string;
}

/** A new list. */
export interface NewExternalPlaylist {
  readonly type: ExternalType;
  readonly category: string;
  readonly name: string;
  /** http or https. Credentials in it become `login` and `password`. */
  readonly url: string;
  /** Seconds, 0 or at least 60. */
  readonly updateInterval: number;
  readonly login?: string | undefined;
  readonly password?: string | undefined;
  /** The name under which the list is fetched: many servers let in only players they know. Default: the engine's own. */
  readonly userAgent?: string | undefined;
  /** Connections that its provider allows at once. Default 0: any number. */
  readonly maxConnections?: number | undefined;
  /** True when the caller may name private addresses; applies to all later fetches, too. */
  readonly allowPrivate: boolean;
}

/** The new values of an edit. */
export interface ExternalPlaylistEdit {
  readonly category: string;
  readonly name: string;
  readonly updateInterval: number;
  /** Where the list has moved to; its items stay what they are. Absent: stays. */
  readonly url?: string | undefined;
  /** As in `NewExternalPlaylist`; counts where `url` is given. */
  readonly allowPrivate?: boolean;
  /** Absent: stays. */
  readonly maxConnections?: number | undefined;
  /** Absent: stays. Empty: the engine's own. */
  readonly userAgent?: string | undefined;
  /** Absent: stays. Empty: removes login and password. */
  readonly login?: string | undefined;
  /**
   * Absent or empty: stays, unless the list moved to another server. Callers never see the password, so they cannot send it
   * back.
   */
  readonly password?: string | undefined;
}

/** Opens an address: `guardedOpen` of src/content, bound to the engine's ports. `credentials` are for HTTP Basic. */
export type OpenUrl = (
  url: string,
  options: {
    readonly headers?: Readonly<Record<string, string>>;
    readonly credentials?: { readonly login: string; readonly password: string } | null;
    readonly timeoutMs: number;
    readonly idleMs?: number;
    readonly minBytesPerS?: number;
    readonly maxBytes?: number;
    readonly allowPrivate: boolean;
  },
  signal: AbortSignal,
) => Promise<{
  readonly status: number;
  readonly headers: Headers;
  readonly url: string;
  /** True when the body came gzipped and was unpacked. */
  readonly isUnpacked?: boolean;
  /** As in `OpenedUrl`. */
  readonly isPublic: boolean;
  readonly body: ReadableStream<Uint8Array>;
}>;

/** Encrypts passwords: `SecretBox` of src/account. */
export interface Sealer {
  seal(text: string, context: string): Promise<string>;
  open(sealed: string, context: string): Promise<string>;
}
