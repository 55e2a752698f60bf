/** Starts a session for a player that `open_in_player` names. */
import { withSignal } from "../bytes/deadline.ts";
import { isKnownMedia } from "../bytes/known-media.ts";
import { readBounded } from "../bytes/read-bounded.ts";
import { MillraceError } from "../errors.ts";
import { startOne } from "../playback/failover.ts";
import { fileBody, manifestText, segmentBody } from "../playback/output.ts";
import type { AnySession } from "../playback/sessions.ts";
import type { PlayerStream, StreamNeeds } from "../players/player-device.ts";
import type { ApiCall } from "./api/method.ts";
import type { ChannelStart } from "./channel-starts.ts";
import { playbackUrl } from "./playback-url.ts";

/** The parts of the engine that `startForPlayer` works with. */
export type PlayerStarting = "clock" | "log" | "policy" | "sentSessions" | "sessions";

/** The stream for a player. */
export interface WantedStream {
  /** The first of them that starts is played. */
  readonly sources: readonly Pick<ChannelStart, "selector" | "fileIndex" | "mayNamePrivate">[];
  readonly needs: StreamNeeds;
  readonly playerId: string;
}

/**
 * Starts the stream as if the caller played it, in a session of the player's own. Its address needs no key: the last part
 * is the session's secret. Rejects as `Sessions.start`, and with `unsupported_media` for a file that a player would not
 * take for film or sound alone.
 */
export async function startForPlayer(
  call: ApiCall<PlayerStarting>,
  wanted: WantedStream,
  signal: AbortSignal,
): Promise<PlayerStream> {
  const { sessions, sentSessions, clock, log } = call.parts;
  const sources = wanted.sources.map(({ selector, fileIndex, mayNamePrivate }) => ({
    start: (own: AbortSignal) =>
      sessions.start({
        selector,
        output: wanted.needs.output,
        fileIndex: fileIndex ?? undefined,
        pid: `player ${wanted.playerId}`,
        clientHost: call.clientHost,
        holder: call.holder,
        callerIsLocal: call.callerIsLocal || mayNamePrivate,
        preferredAudioLanguage: null,
        transcode: wanted.needs.sound === "aac" ? { mp3: false, ac3: true } : null,
        clientSessionId: -1,
        useApiStop: false,
        stopNotifications: false,
        forceRestart: false,
        signal: own,
      }),
    played: () => {},
  }));
  const { session } = await startOne({ clock, log, startTimeoutMs: sessions.startTimeoutMs }, sources, signal);
  const { infohashHex } = session.identity;
  try {
    await requireMedia(session, signal);
  } catch (error) {
    sessions.stop(infohashHex, session.id, "its file is not for players");
    throw error;
  }
  if (wanted.needs.isForeignPage) sentSessions.allow(session.id);
  return {
    id: session.id,
    url: playbackUrl(`${baseFor(call, wanted.needs.host)}/engine`, session),
    title: session.kind === "file" ? session.file.name : session.metainfo.name,
    isLive: session.kind === "live",
    trouble: () => session.problem?.message ?? session.stallReason,
    ready: (signal) => beginningOf(session, signal),
    stop: () => {
      sentSessions.forget(session.id);
      sessions.stop(infohashHex, session.id, "its player needs it no longer");
    },
  };
}

/** Throws unless the player gets a stream of the engine's own making, or a file that is film or sound. */
async function requireMedia(session: AnySession, signal: AbortSignal): Promise<void> {
  const body = fileBody(session);
  if (session.kind !== "file" || body === null) return;
  const { sizeBytes, name } = session.file;
  const isMedia = await isKnownMedia(async (offset, length) => {
    const end = Math.min(offset + length, sizeBytes);
    if (offset >= end) return new Uint8Array();
    const chunks = body.open(offset, end);
    return await withSignal(readBounded(chunks, length, () => new MillraceError("internal", "too long")), signal);
  });
  if (isMedia) return;
  throw new MillraceError(
    "unsupported_media",
    `${name} is no film or sound that the engine knows, whatever its name says. It is not given to players: a playlist ` +
      "in it would make them open addresses in your network",
  );
}

/** Resolves when the first two segments of HLS have arrived; for a broadcast, when its playlist has. */
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
function baseFor({ ownUrl, parts: { policy } }: ApiCall<"policy">, host: string | null): string {
  const base = new URL(ownUrl);
  // A request over TLS came by the name in the certificate.
  if (host === null || base.protocol === "https:") return ownUrl;
  const near = policy.ownAddressNear(host);
  if (near === null) return ownUrl;
  base.hostname = near.includes(":") ? `[${near}]` : near;
  return base.href.replace(/\/$/, "");
}
