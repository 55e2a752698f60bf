/** Recordings of broadcasts and channels: our additions. */
import * as z from "zod";
import { MillraceError } from "../../../errors.ts";
import { MAX_AHEAD_S, MAX_DURATION_S, type RecordingFigures, type Recordings } from "../../../recordings/recordings.ts";
import { playbackKeys } from "../../playlist-key.ts";
import { API_CODES, ApiError } from "../codes.ts";
import { type ApiCall, type Method, methodsWith } from "../method.ts";
import type { ApiParts } from "../parts.ts";
import { NONE, OK, SELECTORS, SHORT_TEXT } from "../schemas.ts";

type Parts = "channels" | "clock" | "guide" | "recordings" | "token";
const defineMethod = methodsWith<Parts>();

/** Recorded unless the caller says how long, s: a long evening. */
const DEFAULT_DURATION_S = 4 * 3600;
/** Longest margin, s. */
const MAX_MARGIN_S = 3600;
/** Programmes of one channel at one moment: guides overlap by mistake. */
const MAX_ON_AT_ONCE = 16;
/** Margins of a programme unless the caller says, s: broadcasters begin early by seconds, and end late by minutes. */
const MARGINS_S = { before: 60, after: 300 };

const ID = z.string().regex(/^[0-9a-f]{16}$/, "16 hexadecimal characters are expected").describe("Of the recording");

const RECORDING = z.object({
  id: z.string(),
  title: z.string(),
  state: z.enum(["planned", "recording", "done", "failed"]),
  from: z.int().describe("Unix seconds"),
  until: z.int().describe("Unix seconds"),
  size: z.int().describe("Bytes"),
  duration: z.number().describe("Seconds that are there"),
  error: z.string().nullable().describe("Why it does not record now, or ended before its time"),
  url: z.string().describe("MPEG TS"),
  manifest_url: z.string().describe("HLS"),
}).meta({ id: "Recording" });

async function recordingJson(figures: RecordingFigures, call: ApiCall<Parts>): Promise<z.input<typeof RECORDING>> {
  const { id, title, state, error } = figures;
  const keyOf = await playbackKeys(call.parts.token.value);
  const base = `${call.ownUrl}/engine/recording/${id}`;
  const key = await keyOf("recording", id);
  return {
    id,
    title,
    state,
    from: Math.floor(figures.fromMs / 1000),
    until: Math.floor(figures.untilMs / 1000),
    size: figures.sizeBytes,
    duration: figures.durationMs / 1000,
    error,
    url: `${base}.ts?key=${key}`,
    manifest_url: `${base}.m3u8?key=${key}`,
  };
}

function recordingsOf({ recordings }: Pick<ApiParts, "recordings">): Recordings {
  if (recordings !== null) return recordings;
  throw new MillraceError("unavailable", "this engine keeps nothing on disk: start it with --state-dir to record");
}

/** When a programme of an item is recorded, Unix seconds, and its title; it is the one that is on at `atS`. */
async function programmeOf(
  { guide, clock }: Pick<ApiParts, "guide" | "clock">,
  item: number | undefined,
  atS: number,
  margins: { readonly before: number; readonly after: number },
): Promise<{ readonly fromS: number; readonly untilS: number; readonly title: string }> {
  if (item === undefined) throw new ApiError(API_CODES.missingParameter, "missing parameter: item, with programme");
  const [channel] = await guide.programmes([item], atS, atS + 1, MAX_ON_AT_ONCE);
  const programme = channel?.programmes.find(({ start, stop }) => start <= atS && atS < stop);
  if (programme === undefined) {
    throw new MillraceError("not_found", "no guide has a programme of this channel at that time");
  }
  const untilS = programme.stop + margins.after;
  if (untilS <= clock.now() / 1000) throw new MillraceError("invalid_argument", "invalid programme: it is over");
  return { fromS: programme.start - margins.before, untilS, title: programme.title };
}

/** The methods of recordings. */
export const RECORDING_METHODS: readonly Method[] = [
  defineMethod({
    name: "recording_start",
    summary:
      "Records a broadcast, a channel or an item of the playlist, from now or a later time on; returns the recording.",
    public: false,
    remote: true,
    params: z.object({
      item: z.int().min(1).optional().describe("Number of an item of the playlist"),
      direct_url: z.string().max(8192).optional().describe("Address of a channel that comes by HTTP"),
      ...SELECTORS,
      title: SHORT_TEXT.optional().describe("Default: that of the programme or item"),
      programme: z.int().min(0).optional().describe(
        "With item: a time at which the wanted programme of its channel is on, Unix seconds; instead of start and duration",
      ),
      margin_before: z.int().min(0).max(MAX_MARGIN_S).default(MARGINS_S.before).describe(
        "How long before the programme it begins, seconds",
      ),
      margin_after: z.int().min(0).max(MAX_MARGIN_S).default(MARGINS_S.after).describe(
        "How long after the programme it ends, seconds",
      ),
      start: z.int().min(0).optional().describe("When it begins, Unix seconds, at most 20 days ahead. Default: now"),
      duration: z.int().min(1).max(MAX_DURATION_S).optional().describe("Seconds. Default: four hours"),
    }),
    result: RECORDING,
    async handle({ item, direct_url: directUrl, content_id: contentId, title, start: given, duration, ...more }, call) {
      const { programme: atS, margin_before: before, margin_after: after, ...named } = more;
      const recordings = recordingsOf(call.parts);
      const wanted = { item, directUrl, contentId, ...named, mayNamePrivate: call.callerIsLocal };
      if (![item, directUrl, contentId, ...Object.values(named)].some((value) => value !== undefined)) {
        throw new ApiError(
          API_CODES.missingParameter,
          "missing parameter: item, direct_url or another that names a stream",
        );
      }
      const nowS = call.parts.clock.now() / 1000;
      const programme = atS === undefined ? null : await programmeOf(call.parts, item, atS, { before, after });
      const start = programme?.fromS ?? given;
      if (start !== undefined && start > nowS + MAX_AHEAD_S) {
        throw new MillraceError("invalid_argument", "invalid start: at most 20 days ahead");
      }
      const member = item === undefined ? undefined : (await call.parts.channels.members({ item }))[0];
      if (item !== undefined && member === undefined) {
        throw new MillraceError("not_found", "the playlist has nothing by that number to record");
      }
      const fromS = Math.max(nowS, start ?? nowS);
      const untilS = Math.min(programme?.untilS ?? fromS + (duration ?? DEFAULT_DURATION_S), fromS + MAX_DURATION_S);
      const id = await recordings.start(
        wanted,
        title ?? programme?.title ?? member?.title ?? "",
        Math.round(fromS * 1000),
        Math.round(untilS * 1000),
      );
      return await recordingJson(recordings.list().find((one) => one.id === id)!, call);
    },
  }),
  defineMethod({
    name: "recording_list",
    summary: "The recordings: what is recorded now, what is to be, and what was, the newest first.",
    public: false,
    remote: true,
    params: NONE,
    result: z.object({ recordings: z.array(RECORDING) }),
    handle: async (_params, call) => ({
      recordings: await Promise.all((call.parts.recordings?.list() ?? []).map((one) => recordingJson(one, call))),
    }),
  }),
  defineMethod({
    name: "recording_stop",
    summary: "Ends a recording, and keeps what there is.",
    public: false,
    remote: true,
    params: z.object({ id: ID }),
    result: OK,
    async handle({ id }, { parts }) {
      await recordingsOf(parts).stop(id);
      return "ok" as const;
    },
  }),
  defineMethod({
    name: "recording_delete",
    summary: "Ends a recording, if it still records, and removes it from the disk.",
    public: false,
    remote: true,
    params: z.object({ id: ID }),
    result: OK,
    async handle({ id }, { parts }) {
      await recordingsOf(parts).delete(id);
      return "ok" as const;
    },
  }),
];
