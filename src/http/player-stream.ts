/** Starts a session for a player that `open_in_player` names. */
import type { StreamSelector } from "../content/selector.ts";
import { manifestText, segmentBody } from "../playback/output.ts";
import type { AnySession } from "../playback/sessions.ts";
import type { PlayerStream, StreamNeeds } from "../players/types.ts";
import type { ApiCall } from "./api/method.ts";
import { playbackUrl } from "./playback-url.ts";

/** The stream for a player. */
export interface WantedStream {
  readonly selector: StreamSelector;
  readonly fileIndex: number | undefined;
  readonly needs: StreamNeeds;
  readonly playerId: string;
}

/**
 * Starts the stream as if the caller played it, in a session of the player's own. Its address needs no key: the last part
 * is the session's secret. Rejects as `Sessions.start`.
 */
export async function startForPlayer(call: ApiCall, wanted: WantedStream, signal: AbortSignal): Promise<PlayerStream> {
  const { sessions, sentSessions } = call.parts;
  const session = await sessions.start({
    selector: wanted.selector,
    output: wanted.needs.output,
    fileIndex: wanted.fileIndex,
    pid: `player ${wanted.playerId}`,
    clientHost: call.clientHost,
    holder: call.holder,
    callerIsLocal: call.callerIsLocal,
    preferredAudioLanguage: null,
    transcode: wanted.needs.sound === "aac" ? { mp3: false, ac3: true } : null,
    clientSessionId: -1,
    useApiStop: false,
    stopNotifications: false,
    forceRestart: false,
    signal,
  });
  const { infohashHex } = session.identity;
  if (wanted.needs.isForeignPage) sentSessions.allow(session.id);
  return {
    id: session.id,
    url: playbackUrl(`${baseFor(call, wanted.needs.host)}/engine`, session),
    title: session.kind === "file" ? session.file.name : session.metainfo.name,
    isLive: session.kind === "live",
    trouble: () => session.errorMessage ?? session.stallReason,
    ready: (signal) => beginningOf(session, signal),
    stop: () => {
      sentSessions.forget(session.id);
      sessions.stop(infohashHex, session.id, "its player needs it no longer");
    },
  };
}

/** Resolves when the first two segments of HLS are here; for a broadcast, when its playlist is. */
async function beginningOf(session: AnySession, signal: AbortSignal): Promise<void> {
  await manifestText(session, String, signal);
  if (session.kind === "live") return;
  for (const n of [0, 1]) {
    const segment = segmentBody(session, n)?.open();
    await segment?.pipeTo(new WritableStream(), { signal });
  }
}

/**
 * The engine's base URL as a player on the machine `host` reaches it. The caller may know the engine by a loopback
 * address, or by a name that only the caller's machine knows. Then it is this machine's address in the player's
 * network.
 */
function baseFor({ ownUrl, parts: { policy } }: ApiCall, host: string | null): string {
  const base = new URL(ownUrl);
  // A request over TLS came by the name in the certificate.
  if (host === null || base.protocol === "https:") return ownUrl;
  const near = policy.ownAddressNear(host);
  if (near === null) return ownUrl;
  base.hostname = near.includes(":") ? `[${near}]` : near;
  return base.href.replace(/\/$/, "");
}
