/** Turns the parameters of a start into a request to playback. */
import type { OutputKind } from "../playback/session-base.ts";
import type { StartRequest } from "../playback/start-request.ts";
import { callerOf, sessionHolderOf } from "./caller.ts";
import type { HttpContext, HttpParts } from "./context.ts";
import { sessionOwner } from "./page.ts";
import { transcodingOf, wantsSingleReader } from "./playback-params.ts";
import type { PlaybackParams } from "./playback-schema.ts";

/** Facts that the parameters do not contain. */
export interface StartFacts {
  readonly selector: StartRequest["selector"];
  readonly output: OutputKind;
  /** The user chose the stream, so it may lead into the private network. */
  readonly mayNamePrivate: boolean;
  readonly signal: AbortSignal;
}

/** The start that the request of `c` asks for. */
export function startRequest(
  c: HttpContext,
  parts: HttpParts,
  params: PlaybackParams,
  { selector, output, mayNamePrivate, signal }: StartFacts,
): StartRequest {
  const isTrial = c.req.raw.method === "HEAD";
  return {
    selector,
    output,
    fileIndex: params._idx,
    pid: params.pid ?? params.sid,
    clientHost: c.get("caller").clientHost,
    caller: callerOf(c),
    owner: sessionOwner(c.req.raw, c.get("page")),
    holder: sessionHolderOf(c),
    // No page of another origin may explore the user's network.
    callerIsLocal: mayNamePrivate || c.get("caller").isLocal,
    preferredAudioLanguage: params.preferred_audio_language ?? null,
    transcode: output === "file" ? null : transcodingOf(params, parts.transcodeAudio),
    hlsFormat: params.playlist_output_format_vod ?? "auto",
    clientSessionId: params.client_session_id ?? -1,
    useApiStop: params.use_api_stop ?? false,
    stopNotifications: params.use_stop_notifications ?? false,
    forceRestart: params.force_session_restart === true && !isTrial,
    singleReader: wantsSingleReader(params),
    cushion: params.cushion ?? null,
    withoutPeers: params.disable_p2p ?? false,
    selectedIndexes: params.playlist_selected_indexes ?? null,
    nextIndexes: params.next_file_indexes ?? null,
    isTrial,
    // Middleware shows the progress; a redirected player learns by the status that a stream can't be played.
    atOnce: params.format === "json",
    signal,
  };
}
