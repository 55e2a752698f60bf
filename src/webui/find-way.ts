/** Asks this browser which way it plays a film, before anything is put into the video element. */

import { canDecode, type Lacks, LACKS_NOTHING, missingCodecs } from "./codecs.ts";
import { EngineError, readStat, type Started, type Stat } from "./engine.ts";
import { codeOf } from "./texts.ts";
import { fileType, type Way, wayOf } from "./way.ts";

/** A way, and what the browser lacks for HLS. */
export interface FoundWay {
  readonly way: Way;
  readonly lacks: Lacks;
}

/**
 * Asks this browser about the film of `session`, once the engine has opened it. Where the engine does not respond it is HLS,
 * whose player tries again. Rejects with the engine's words if it refuses HLS and the browser does not play the file.
 */
export async function findWay(
  session: Started,
  filename: string,
  isConverted: boolean | null,
  signal: AbortSignal,
): Promise<FoundWay> {
  const asItIs: FoundWay = { way: "hls", lacks: LACKS_NOTHING };
  const answer = await fetch(session.playback_url, { signal }).catch(() => null);
  const words = await answer?.text().catch(() => "") ?? "";
  const isRefused = answer?.status === UNSUPPORTED;
  // A session that was refused has ended.
  const stat = answer?.ok === true ? await readStat(session.stat_url, true) : "over";
  if (typeof stat !== "object" && !isRefused) return asItIs;
  const known: Partial<Stat> = typeof stat === "object" ? stat : {};
  const [tracks, sourceTracks] = [known.tracks ?? [], known.source_tracks ?? []];
  const lacks = await missingCodecs(tracks, canDecode);
  const type = fileType(filename, sourceTracks);
  const element = document.createElement("video");
  const playsHls = "MediaSource" in globalThis || "ManagedMediaSource" in globalThis ||
    element.canPlayType("application/vnd.apple.mpegurl") !== "";
  const playsFile = type !== null && element.canPlayType(type) !== "";
  const way = wayOf({ tracks, sourceTracks, isRefused }, { lacks, playsHls, playsFile }, isConverted);
  if (isRefused && way === "none") throw new EngineError(words, codeOf("unsupported_media")!);
  return { way, lacks };
}

/** The engine cannot make HLS of the file. */
const UNSUPPORTED = 415;
