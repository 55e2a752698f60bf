/** @jsxImportSource hono/jsx/dom */
/** Progress while the engine looks a torrent up: the known peers, and how much of its description has arrived. */
import { type ApiTorrentProgress, call } from "./engine.ts";
import { useEffect, useState } from "./state.ts";
import { bytesText, text } from "./texts.ts";

/** Time between two checks, ms. */
const LOOK_EVERY_MS = 1000;

/** Trackers whose refusals are shown: more say no more than a few. */
const MAX_REFUSALS = 2;

/** Fields of a link that are shown, and characters of each: enough to find them in it. */
const MAX_UNREAD = 3;
const MAX_UNREAD_CHARS = 60;

/** Properties of `Looking`. */
export interface LookingProps {
  /** null where only the engine will find it out. */
  readonly infohash: string | null;
}

/** A line that moves, and what is known so far. */
export function Looking({ infohash }: LookingProps) {
  const [progress, setProgress] = useState<ApiTorrentProgress | null>(null);
  useEffect(() => {
    if (infohash === null) return;
    const ending = new AbortController();
    const look = async () => {
      while (!ending.signal.aborted) {
        setProgress(await call<ApiTorrentProgress>("get_torrent_progress", { infohash }));
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
      }
    };
    // Without a token there is no more to say.
    look().catch(() => {});
    return () => ending.abort();
  }, []);
  return (
    <div>
      <p class="flow">{text("looking")}</p>
      <p class="note">{progress === null || !progress.is_running ? "" : progressText(progress)}</p>
    </div>
  );
}

/** The progress in words. */
export function progressText({ peers, known_peers, metadata, checking, trackers, unread }: ApiTorrentProgress): string {
  // A wrong passkey or an unregistered torrent is all that a user of a private tracker has to know.
  const refusals = known_peers > 0 ? [] : trackers.filter(({ error }) => error !== null).slice(0, MAX_REFUSALS);
  return [
    text("knownPeers", known_peers, peers),
    ...refusals.map(({ name, error }) => `${name}: ${error}`),
    ...unread.length === 0 ? [] : [text("unreadFields", fieldsText(unread))],
    ...metadata === null ? [] : [text("gettingMetadata", bytesText(metadata.received), bytesText(metadata.total))],
    ...checking === null ? [] : [text("checkingDisk", checking.done, checking.total)],
  ].join(" · ");
}

function fieldsText(fields: readonly string[]): string {
  const shown = fields.slice(0, MAX_UNREAD).map((field) => {
    return field.length > MAX_UNREAD_CHARS ? `${field.slice(0, MAX_UNREAD_CHARS)}…` : field;
  });
  return [...shown, ...fields.length > MAX_UNREAD ? ["…"] : []].join(", ");
}
