/**
 * A transport stream over HTTP. An address that turns out to be a playlist or another format goes to its own reader.
 */
import { MillraceError } from "../errors.ts";
import type { LiveInputEvent } from "../live/broadcast/input.ts";
import { ffmpegEvents } from "./ffmpeg.ts";
import { hlsEvents } from "./hls.ts";
import { LIVE_LEAD_MS, LIVE_RATE, type Pace, paced } from "./pacer.ts";
import { inPackets } from "./packets.ts";
import type { SourcePorts } from "./ports.ts";
import { FatalSourceError, retrying, SILENT_AFTER_MS } from "./retry.ts";
import { checkedHead, isPlaylist, isTransportStream } from "./sniff.ts";
import { describeUrl } from "./spec.ts";
import { ANSWER_TIMEOUT_MS, SourceWeb } from "./web.ts";

/** Deadline for a connection and its first bytes, ms. */
const FIRST_MS = ANSWER_TIMEOUT_MS + SILENT_AFTER_MS;

/** A sender that paces itself, with room for its bursts. */
export const SENDER_PACE: Pace = { leadMs: LIVE_LEAD_MS, rate: () => LIVE_RATE, needsClock: false };

/** Ends the tries: the address holds another format. */
class OtherFormat extends FatalSourceError {
  readonly isPlaylist: boolean;

  constructor(isPlaylist: boolean) {
    super("unsupported_media", "the source is no MPEG TS");
    this.isPlaylist = isPlaylist;
  }
}

/** Reads `url`. `once`: a response that ends in order is the end of the source. */
export async function* httpEvents(
  ports: SourcePorts,
  url: string,
  once: boolean,
  signal: AbortSignal,
): AsyncGenerator<LiveInputEvent, void> {
  const web = new SourceWeb(ports, url);
  if (/\.m3u8?$/i.test(new URL(url).pathname)) return yield* hlsEvents(ports, web, url, signal);
  let hasBegun = false;
  const connect = async function* (own: AbortSignal): AsyncGenerator<Uint8Array, void> {
    const { body } = await web.open(url, {}, own);
    yield* checkedHead(body, (head) => {
      if (isTransportStream(head)) hasBegun = true;
      // A page that says that the server is under repair is no new format.
      else if (hasBegun) throw new MillraceError("bad_media", "the server sent something other than MPEG TS");
      else throw new OtherFormat(isPlaylist(head));
    });
  };
  try {
    const packets = inPackets(retrying(ports.clock, connect, { once, firstMs: FIRST_MS, signal }));
    yield* paced(packets, ports.clock, SENDER_PACE, signal);
  } catch (error) {
    if (!(error instanceof OtherFormat)) throw error;
    if (error.isPlaylist) return yield* hlsEvents(ports, web, url, signal);
    if (ports.network.namesAreRemote === true) {
      throw new FatalSourceError("unsupported_media", "it is not MPEG TS, and ffmpeg would connect beside --proxy");
    }
    ports.log.log("info", `${describeUrl(url)} is not MPEG TS: ffmpeg converts it`);
    yield* ffmpegEvents(ports, { url, before: ["-re"], onlyMedia: true, once }, signal);
  }
}
