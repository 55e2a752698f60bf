/** The engine as the page sees it: its public HTTP API and nothing else. */

import type { ApiTrack } from "./codecs.ts";
import type { Epg } from "./programme.ts";
import { codeOf, TOO_OFTEN } from "./texts.ts";

/** A failed call, with the engine's own words. */
export class EngineError extends Error {
  /** API code; 4: the token is missing or wrong. -1: the engine did not respond. */
  readonly code: number;

  constructor(message: string, code: number) {
    super(message);
    this.code = code;
  }
}

/** A file of a torrent. */
export interface ApiMediaFile {
  readonly index: number;
  readonly filename: string;
  readonly size?: number;
}

/** The fields of `get_media_files` that the page uses. */
export interface ApiMediaFiles {
  readonly infohash: string;
  /** Of a torrent of version 2, or of both versions. */
  readonly infohash_v2?: string;
  readonly name: string;
  readonly type: "live" | "vod";
  readonly transport_type: "bt" | "hls" | "wrapper";
  readonly files: readonly ApiMediaFile[];
}

/** The fields of `analyze_content` that the page uses. */
export interface ApiAnalysis {
  readonly content_type: string;
  readonly infohash: string | null;
  readonly item_url: string | null;
  readonly title: string;
  readonly is_live: number;
}

/** The answer to a start with `format=json`. */
export interface Started {
  readonly playback_url: string;
  readonly stat_url: string;
  readonly command_url: string;
  readonly infohash: string;
  readonly is_live: number;
}

/** A peer of a torrent. */
export interface Peer {
  readonly address: string;
  readonly client: string | null;
  /** KiB per second. */
  readonly speed_down: number;
  readonly speed_up: number;
  readonly is_seed: boolean;
  readonly is_open: boolean;
}

/** A member of a broadcast that the engine is connected to. */
export interface Member {
  readonly address: string;
  readonly is_source: boolean;
  /** Substreams that come from it, and that go to it. */
  readonly from: readonly number[];
  readonly to: readonly number[];
  /** Pieces behind the newest member. */
  readonly lag: number;
  /** Milliseconds. */
  readonly rtt: number | null;
  /** Bytes per second. */
  readonly uplink: number | null;
}

/** The fields of a session's status that the page uses. */
export interface Stat {
  readonly status: "prefuf" | "dl";
  /** Prebuffering, percent. */
  readonly progress: number;
  /** Of the whole torrent, percent. */
  readonly total_progress: number;
  readonly peers: number;
  /** KiB per second. */
  readonly speed_down: number;
  readonly speed_up: number;
  /** The peers are slower than the film: playing waits so long, and plays so long then; null: to its end. Seconds. */
  readonly cushion_wait_s: number | null;
  readonly cushion_play_s: number | null;
  readonly stall_reason: string | null;
  readonly error_message: string | null;
  /** With `detail=1`: the engine's code of that error. */
  readonly error_code?: string | null;
  /** With `detail=1`: the pieces of the file in cells, each with how much of it is downloaded, 0 to 9; null of broadcasts. */
  readonly pieces?:
    | {
      readonly count: number;
      readonly cells: string;
      readonly under_way: readonly number[];
      readonly readers: readonly number[];
    }
    | null;
  /** With `detail=1`: the tracks of the output; null of broadcasts and while they are not known. */
  readonly tracks?: readonly ApiTrack[] | null;
  /** The same of the file, with what the output lacks. */
  readonly source_tracks?: readonly ApiTrack[] | null;
  /** With `detail=1`: pieces on the disk that are being verified; null: none. */
  readonly checking?: { readonly done: number; readonly total: number } | null;
  /** With `detail=1`: the fastest peers; of a broadcast none. */
  readonly peer_list?: readonly Peer[];
  /** With `detail=1`: the members of a broadcast that the engine is connected to. */
  readonly members?: readonly Member[];
  readonly livepos?: { readonly is_live: string; readonly first_ts: string; readonly last_ts: string };
}

/** The fields of a playlist item that the page uses. */
export interface Item {
  readonly id: number;
  readonly title: string;
  readonly display_title: string | null;
  readonly tvg_id: string;
  readonly tvg_logo: string;
  readonly category: string | null;
  readonly infohash: string;
  readonly file_index: number | null;
  readonly content_id: string | null;
  readonly url: string | null;
  readonly transport_type: string | null;
  readonly icons: readonly string[];
  readonly is_live: number;
  readonly is_favorite: boolean;
  readonly enabled: boolean;
  readonly locked: boolean;
  /** With `show_epg`. */
  readonly epg?: Epg;
}

/** A list that is fetched at intervals; the fields that the page uses. Times are Unix seconds, 0: never. */
export interface ExternalList {
  readonly id: number;
  readonly name: string;
  readonly url: string;
  readonly category: string;
  /** Connections that its provider allows at once; 0: any number. */
  readonly max_connections: number;
  /** Seconds; 0: by hand alone. */
  readonly update_interval: number;
  readonly last_update: number;
  readonly next_update: number;
  /** Why the last fetch failed; absent or null when it did not. */
  readonly last_error?: string | null;
  readonly last_error_code?: string;
}

/** How far an import is. */
export interface Task {
  readonly task_id: number;
  readonly kind: string;
  readonly state: "queued" | "running" | "done" | "failed" | "cancelled";
  readonly done: number;
  readonly total: number;
  readonly skipped: number;
  readonly errors: readonly { readonly line: number; readonly message: string }[];
  readonly errors_total: number;
  readonly error: string | null;
  readonly error_code: string | null;
}

/** Path that the engine stands below, without a slash at the end: behind a reverse proxy not always the root. */
export const BASE = document.querySelector<HTMLMetaElement>('meta[name="millrace-base"]')?.content ?? "";

/** Whether the page is on the engine's machine, which gives it its token; elsewhere asking for that is refused. */
export const IS_HERE = document.querySelector('meta[name="millrace-here"]') !== null;

/** Where the token that the user typed is kept; one that the engine gave is asked for again at each visit. */
const TOKEN_KEY = "millrace-token";

let token: string | null = null;

/** Calls a public method. Rejects with `EngineError`. */
export function callPublic<T>(method: string, params: Record<string, string> = {}, file?: Blob): Promise<T> {
  return send<T>(new URLSearchParams({ method, ...params }), file);
}

/** Calls a private method with the token. Rejects with `EngineError`: code 4 when the user has to enter it. */
export async function call<T>(method: string, params: Record<string, string> = {}, file?: Blob): Promise<T> {
  token ??= await findToken();
  return await send<T>(new URLSearchParams({ method, ...params, token }), file);
}

/** Rejects with `EngineError`, code 4, where the user has to enter the token. */
export async function requireToken(): Promise<void> {
  token ??= await findToken();
}

/** A player that a stream can be sent to. */
export interface OtherPlayer {
  readonly id: string;
  readonly name: string;
}

/** What such a player does, as `get_player_status` returns it. Seconds, and percent; null where it does not say. */
export interface ApiPlayerStatus {
  readonly state: "idle" | "playing" | "paused";
  readonly position: number | null;
  readonly duration: number | null;
  readonly volume: number | null;
}

/** Calls a public method that starts something: by POST, with which browsers say which page asks. Rejects with `EngineError`. */
export async function act(method: string, params: Record<string, string>): Promise<unknown> {
  return await send(new URLSearchParams({ method, ...params, ...await tokenFor(params) }), new Blob());
}

/** The engine opens the user's library, and addresses, to those who have the token. */
async function tokenFor(stream: Record<string, string>): Promise<Record<string, string>> {
  if (stream["item"] === undefined && stream["direct_url"] === undefined) return {};
  await requireToken();
  return { token: token! };
}

/** Takes the token that the user typed. */
export function useToken(value: string): void {
  token = value.trim();
  localStorage.setItem(TOKEN_KEY, token);
}

/** A device that is signed in, as `get_devices` returns it. Unix seconds. */
export interface ApiDevice {
  readonly id: number;
  readonly login: string;
  readonly name: string;
  readonly seen_at: number;
}

/** Where the number is kept that this device has among those that are signed in. */
const DEVICE_KEY = "millrace-device";

/** Signs this device in by an account's password. Rejects with `EngineError`, with `auth_error` for a wrong password. */
export async function signIn(email: string, password: string): Promise<void> {
  const init = { method: "POST", body: JSON.stringify({ email, password }) };
  const response = await fetch(`${BASE}/webui/sign-in`, init).catch(() => null);
  const answer = await response?.json().catch(() => null) as { token?: string; id: number; error?: string } | null;
  if (!answer) throw new EngineError("", -1);
  if (answer.token === undefined) throw new EngineError(answer.error ?? "", response?.status === 429 ? TOO_OFTEN : 4);
  useToken(answer.token);
  localStorage.setItem(DEVICE_KEY, String(answer.id));
}

/** The number of this device; null when it did not sign in by password. */
export function ownDevice(): number | null {
  return Number(localStorage.getItem(DEVICE_KEY)) || null;
}

/** Forgets the token of this device. */
export function signOutHere(): void {
  for (const key of [TOKEN_KEY, DEVICE_KEY]) localStorage.removeItem(key);
}

/** The engine gives its token to pages of its own on this machine; elsewhere the user types it once. */
async function findToken(): Promise<string> {
  if (IS_HERE) return (await callPublic<{ token: string }>("get_api_access_token")).token;
  const kept = localStorage.getItem(TOKEN_KEY);
  if (kept === null) throw new EngineError("", 4);
  return kept;
}

async function send<T>(query: URLSearchParams, file?: Blob): Promise<T> {
  const init = file === undefined ? {} : { method: "POST", body: file };
  const response = await fetch(`${BASE}/server/api?${query}`, init).catch(() => null);
  const answer = await response?.json().catch(() => null) as
    | {
      result: T;
      error: { message: string; code: number } | null;
    }
    | null
    | undefined;
  if (!answer) throw new EngineError("", -1);
  if (answer.error !== null) {
    if (answer.error.code === 4) token = null;
    throw new EngineError(answer.error.message, answer.error.code);
  }
  return answer.result;
}

/** A failed start that the page has no words for. */
const NO_CODE = -2;
/** Starts playback as HLS. `stream` are the parameters of the selector. Rejects with `EngineError`. */
export async function startPlayback(
  stream: Record<string, string>,
  route: "manifest.m3u8" | "getfile" = "manifest.m3u8",
): Promise<Started> {
  const query = new URLSearchParams({ ...stream, ...await tokenFor(stream), format: "json" });
  const response = await fetch(`${BASE}/engine/${route}?${query}`).catch(() => null);
  const answer = await response?.json().catch(() => null) as { response: Started | null; error: string | null } | null;
  if (!answer) throw new EngineError("", -1);
  if (answer.response === null) {
    throw new EngineError(answer.error ?? "", codeOf(response?.headers.get("millrace-error") ?? null) ?? NO_CODE);
  }
  return answer.response;
}

/**
 * Session info; `over` when there is no such session, `gone` when the engine does not respond. `isWatched`: somebody is
 * there, so the session goes on even where nothing of it is read.
 */
export async function readStat(statUrl: string, isWatched: boolean): Promise<Stat | "over" | "gone"> {
  const response = await fetch(`${statUrl}?detail=1${isWatched ? "" : "&skip_player_activity=1"}`).catch(() => null);
  const answer = await response?.json().catch(() => null) as { response: Stat | null } | null | undefined;
  return answer ? answer.response ?? "over" : "gone";
}

/** Ends a session; a page that is being left can still send this. */
export function stopPlayback({ command_url }: Started): void {
  void fetch(`${command_url}?method=stop`, { keepalive: true }).catch(() => {});
}

/** Has the session end after so long without anything being read or asked, s. */
export function keepSession({ command_url }: Started, seconds: number): void {
  void fetch(`${command_url}?method=set_player_activity_timeout&timeout=${seconds}`).catch(() => {});
}

/** Plays on without waiting for a cushion. */
export function playNow({ command_url }: Started): void {
  void fetch(`${command_url}?method=play_now`).catch(() => {});
}

/** What `get_settings` returns. Bytes, and bytes per second. */
export interface ApiSettings {
  readonly version: { readonly version: string; readonly platform: string };
  readonly runtime: string;
  readonly access: { readonly intranet: boolean; readonly internet: boolean };
  readonly limits: { readonly download: number; readonly upload: number; readonly max_peers: number };
  /** `auto`, `off`, or seconds of the film. */
  readonly cushion: string;
  readonly cache: { readonly kind: "disk" | "ram" | "seed"; readonly limit: number; readonly used: number };
  readonly network: {
    readonly connected: boolean;
    readonly peer_port: number | null;
    readonly dht: boolean;
    readonly lsd: boolean;
    readonly pex: boolean;
  };
  readonly swarms: number;
  readonly peers: number;
  readonly sessions: number;
}

/** A line of the log, as `get_log` returns it. `time` is in Unix seconds. */
export interface ApiLogLine {
  readonly time: number;
  readonly level: "error" | "warn";
  readonly message: string;
  readonly detail: string;
}

/** Other engines, as `get_cast_senders` returns them. */
export interface ApiCastSenders {
  /** This engine's own; null: it takes nothing. */
  readonly key: string | null;
  readonly allowed: readonly { readonly key: string; readonly name: string }[];
  readonly pending: readonly { readonly key: string; readonly name: string; readonly host: string }[];
}

/** A broadcast that this engine sends, as `broadcast_list` returns it. Bytes per second. */
export interface ApiBroadcast {
  readonly title: string;
  readonly source: string;
  readonly content_id: string;
  readonly infohash: string;
  readonly input: number | null;
  readonly upload: number;
  readonly peers: number;
  readonly lost: string | null;
  readonly ended: boolean;
  readonly error: string | null;
  readonly error_code: string | null;
  readonly members: readonly Member[];
}

/** What a torrent does before it plays, as `get_torrent_progress` returns it. */
export interface ApiTorrentProgress {
  readonly is_running: boolean;
  readonly peers: number;
  readonly known_peers: number;
  /** Bytes of its description; null while nobody sends it. */
  readonly metadata: { readonly received: number; readonly total: number } | null;
  readonly checking: { readonly done: number; readonly total: number } | null;
  /** `error`: what the tracker answered instead of peers. */
  readonly trackers: readonly { readonly name: string; readonly peers: number; readonly error: string | null }[];
  /** Fields of its magnet link without a usable address, `tr=…`. */
  readonly unread: readonly string[];
}
