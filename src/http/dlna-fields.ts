/** Fields that DLNA devices ask for when they read media (DLNA guidelines, part 1-1, 7.4). */
import { MillraceError } from "../errors.ts";
import { contentFeatures } from "../upnp/dlna.ts";
import { parseTime } from "./playback-params.ts";

const FEATURES_WANTED = "getcontentfeatures.dlna.org";
const TRANSFER_MODE = "transfermode.dlna.org";
const TIME_SEEK = "timeseekrange.dlna.org";

/** Adds the fields that the request asked for; other clients get none. */
export function addDlnaFields(request: Headers, response: Headers, hasRanges: boolean, hasTimes = false): void {
  if (request.get(FEATURES_WANTED) === "1") {
    response.set("contentFeatures.dlna.org", contentFeatures(hasRanges, hasTimes));
  }
  const mode = request.get(TRANSFER_MODE);
  // Media that plays is never for "Interactive" transfer.
  if (mode !== null) response.set("transferMode.dlna.org", /^background$/i.test(mode) ? "Background" : "Streaming");
}

/** A range of times, ms; `untilMs` null: to the end. */
export interface TimesWanted {
  readonly fromMs: number;
  readonly untilMs: number | null;
}

/**
 * The range of times that the request asks for; null without one, which means the whole. Throws `invalid_argument` for
 * a malformed one (DLNA guidelines, part 1-1, 7.4.40; the times as RFC 2326, 3.6).
 */
export function timesWanted(request: Headers): TimesWanted | null {
  const field = request.get(TIME_SEEK);
  if (field === null) return null;
  const [, from, until] = /^npt=([\d:.]{1,20})-([\d:.]{0,20})$/.exec(field.replaceAll(" ", "")) ?? [];
  if (from === undefined) {
    throw new MillraceError("invalid_argument", "TimeSeekRange.dlna.org: npt=FROM-UNTIL is expected");
  }
  const ms = (text: string) => 1000 * parseTime("TimeSeekRange.dlna.org", text);
  const wanted = { fromMs: ms(from), untilMs: until ? ms(until) : null };
  return wanted.fromMs === 0 && wanted.untilMs === null ? null : wanted;
}

/** The part of a stream that is sent for a range of times: `[start, end)`, and when that is played. */
export interface TimesSent {
  readonly startMs: number;
  readonly endMs: number;
  readonly durationMs: number;
  readonly start: number;
  readonly end: number;
  readonly sizeBytes: number;
}

/** Reports which times are sent. */
export function addTimes(response: Headers, sent: TimesSent): void {
  const seconds = (ms: number) => (ms / 1000).toFixed(3);
  const times = `npt=${seconds(sent.startMs)}-${seconds(sent.endMs)}/${seconds(sent.durationMs)}`;
  response.set("TimeSeekRange.dlna.org", `${times} bytes=${sent.start}-${sent.end - 1}/${sent.sizeBytes}`);
}
