/** The recordings of an engine: what they start, and where they are. */
import { selectStream } from "../content/selector.ts";
import { MillraceError } from "../errors.ts";
import { channelStarts } from "../http/channel-starts.ts";
import { RECORDER } from "../playback/channel/channel-sources.ts";
import { startOne } from "../playback/failover.ts";
import type { AnySession, Sessions } from "../playback/sessions.ts";
import type { StartRequest } from "../playback/start-request.ts";
import type { Channels } from "../playlist/channel.ts";
import { Recordings, type RecordingTarget } from "../recordings/recordings.ts";
import type { Ground } from "./ground.ts";

const GIB = 2 ** 30;
/** Default of `recordingsLimitBytes`: ten hours of a channel in high definition. */
const DEFAULT_LIMIT_BYTES = 50 * GIB;

/** Opens the recordings in the state directory; null where the engine keeps nothing on disk. */
export async function openRecordings(
  { ports: { files, clock, log }, options, stateDir, startTimeoutMs, closing }: Ground,
  sessions: Sessions,
  channels: Channels,
): Promise<Recordings | null> {
  if (stateDir === null) return null;
  const start = async (wanted: RecordingTarget, id: string, signal: AbortSignal): Promise<AnySession> => {
    const starts = await startsOf(wanted, channels);
    const sources = starts.map(({ selector, fileIndex, mayNamePrivate }) => ({
      start: (own: AbortSignal) =>
        sessions.start({
          selector: selector.kind === "channel" ? { ...selector, isRecorded: true } : selector,
          output: "hls",
          fileIndex: fileIndex ?? undefined,
          pid: `recording ${id}`,
          owner: RECORDER,
          clientHost: "127.0.0.1",
          callerIsLocal: mayNamePrivate || wanted.mayNamePrivate,
          preferredAudioLanguage: null,
          transcode: null,
          clientSessionId: -1,
          useApiStop: true,
          stopNotifications: false,
          forceRestart: false,
          signal: own,
        }),
      played: () => {},
    }));
    return (await startOne({ clock, log, startTimeoutMs }, sources, signal)).session;
  };
  const recordings = await Recordings.load({
    files,
    clock,
    log,
    directory: `${stateDir}/recordings`,
    limitBytes: options.recordingsLimitBytes ?? DEFAULT_LIMIT_BYTES,
    start,
  });
  closing.push(() => recordings.close());
  return recordings;
}

async function startsOf(
  { item, directUrl, contentId, infohash, url, magnet, mayNamePrivate }: RecordingTarget,
  channels: Channels,
): Promise<{ selector: StartRequest["selector"]; fileIndex: number | null; mayNamePrivate: boolean }[]> {
  if (item !== undefined) {
    const starts = channelStarts(await channels.members({ item }));
    if (starts.length === 0) throw new MillraceError("not_found", "the item to record is no longer in the playlist");
    return starts;
  }
  const addresses = [{ address: directUrl ?? "", named: directUrl ?? "", mayNamePrivate, item: null }];
  const selector = directUrl === undefined
    ? selectStream({ content_id: contentId, infohash, url, magnet })
    : { kind: "channel", name: "channel", addresses } as const;
  return [{ selector, fileIndex: null, mayNamePrivate }];
}
