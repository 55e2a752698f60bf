/** The request that starts a session, and how it is repeated when the session comes back. */
import type { StreamSelector } from "../content/selector.ts";
import type { AudioTranscoding } from "../media/model/audio-target.ts";
import type { HlsFormat } from "../media/model/types.ts";
import type { ChannelSelector } from "./channel/channel-selector.ts";
import type { CushionChoice } from "./cushion.ts";
import type { OutputKind, SessionIdentity } from "./session-base.ts";
import type { SessionRecord } from "./session-records.ts";
import { OWN, type ShareHolder } from "../bytes/shares.ts";

/** Without activity a session ends after this. */
const ACTIVITY_TIMEOUT_MS = 60_000;
/** The same for clients that promise to call stop (`use_api_stop=1`). */
const API_STOP_TIMEOUT_MS = 3_600_000;
/** The same on a channel that comes by HTTP: nobody may occupy a connection of the account that nobody watches. */
const CHANNEL_TIMEOUT_MS = 10_000;

/** What a start needs; the HTTP layer has parsed and typed it. */
export interface StartRequest {
  readonly selector: StreamSelector | ChannelSelector;
  readonly output: OutputKind;
  readonly fileIndex: number | undefined;
  readonly pid: string | undefined;
  /** Address of the caller. */
  readonly clientHost: string;
  /** The caller as `Sessions.open` names it; it may use segments without the id. Default: `clientHost`. */
  readonly caller?: string;
  /** As in `SessionIdentity`. Default: a program of the user. */
  readonly owner?: string | null;
  /** The holder whose share of the sessions this one takes. Default: this machine's own programs. */
  readonly holder?: ShareHolder;
  readonly callerIsLocal: boolean;
  readonly preferredAudioLanguage: string | null;
  /** Which audio is converted to AAC; null: none. */
  readonly transcode: AudioTranscoding | null;
  /** Format of the segments of a file's HLS. Default: `auto`. */
  readonly hlsFormat?: HlsFormat;
  readonly clientSessionId: number;
  readonly useApiStop: boolean;
  readonly stopNotifications: boolean;
  /** Ends a running session of the same key first. */
  readonly forceRestart: boolean;
  /** Each new read of a file session ends the ones before. Default: any number read at once. */
  readonly singleReader?: boolean;
  /** How much has arrived ahead of a player that the swarm is too slow for, once it has stopped twice. Null or absent: the setting. */
  readonly cushion?: CushionChoice | null;
  /** No peer is asked or served: all data comes from web seeds. Default false. */
  readonly withoutPeers?: boolean;
  /** Files from which the default one is chosen; null or absent: all. */
  readonly selectedIndexes?: readonly number[] | null;
  /** Files that may be played next; their beginning is fetched ahead. Null or absent: not known. */
  readonly nextIndexes?: readonly number[] | null;
  /**
   * The session is returned as soon as stream and file are known; it opens the container by itself, and fails by
   * itself. Default: it is returned when there is something to read.
   */
  readonly atOnce?: boolean;
  /**
   * Nothing may change: a running session stays, and one that had to be made ends as soon as its start is decided. Its
   * URL brings it back. Must come without `forceRestart`. Default false.
   */
  readonly isTrial?: boolean;
  /** Id of a session that comes back. Default: a new one. */
  readonly id?: string;
  /** The caller gave up. */
  readonly signal: AbortSignal;
}

/** How long a session that `request` starts lives without activity, ms. */
export function activityTimeoutMs({ useApiStop, selector }: StartRequest): number {
  if (useApiStop) return API_STOP_TIMEOUT_MS;
  return selector.kind === "channel" ? CHANNEL_TIMEOUT_MS : ACTIVITY_TIMEOUT_MS;
}

/** What makes two requests the same session, and the same as text. */
export function identify(
  infohashHex: string,
  fileIndex: number,
  output: OutputKind,
  request: StartRequest,
  isLive = false,
): { identity: SessionIdentity; key: string } {
  const client = request.pid ?? request.clientHost;
  const owner = request.owner ?? null;
  const hlsFormat = output === "hls" && !isLive ? request.hlsFormat ?? "auto" : "auto";
  const identity = { infohashHex, fileIndex, output, hlsFormat, client, owner };
  return { identity, key: JSON.stringify([infohashHex, fileIndex, output, hlsFormat, client, owner]) };
}

/** The request that brings back a session started by `request`. */
export function recordOf(
  session: Pick<SessionRecord, "id" | "isLive" | "isDefaultFile">,
  identity: SessionIdentity,
  request: StartRequest,
): SessionRecord {
  const { selector } = request;
  return {
    ...session,
    ...identity,
    clientHost: request.clientHost,
    callerIsLocal: request.callerIsLocal,
    preferredAudioLanguage: request.preferredAudioLanguage,
    transcode: request.transcode,
    clientSessionId: request.clientSessionId,
    useApiStop: request.useApiStop,
    stopNotifications: request.stopNotifications,
    singleReader: request.singleReader ?? false,
    cushion: request.cushion ?? null,
    withoutPeers: request.withoutPeers ?? false,
    nextIndexes: request.nextIndexes ?? [],
    magnet: selector.kind === "magnet" ? selector.magnet : null,
    channel: selector.kind === "channel" ? selector : null,
    holder: request.holder ?? OWN,
    holders: [request.caller ?? request.clientHost],
  };
}

/** The start of a session that comes back. */
export function requestOf(record: SessionRecord, signal: AbortSignal): StartRequest {
  const { channel, magnet, infohashHex } = record;
  const named = magnet === null
    ? { kind: "infohash", infohash: infohashHex } as const
    : { kind: "magnet", magnet } as const;
  return {
    ...record,
    selector: channel ?? named,
    fileIndex: record.isLive ? undefined : record.fileIndex,
    pid: record.client,
    forceRestart: false,
    signal,
  };
}

/** 128 random bits as 32 hexadecimal characters. */
export function newSessionId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
