/** "Players" of section 4.4, and, our additions, control of a player afterwards. */
import * as z from "zod";
import { withLocalFile } from "../../../content/local-file.ts";
import { type SelectorValues, selectStream } from "../../../content/selector.ts";
import { MillraceError } from "../../../errors.ts";
import { channelStarts } from "../../channel-starts.ts";
import { type PlayerStarting, startForPlayer, type WantedStream } from "../../player-stream.ts";
import { API_CODES, ApiError } from "../codes.ts";
import { type ApiCall, type Method, methodsWith } from "../method.ts";
import { ITEM_ID, OK, SELECTORS } from "../schemas.ts";

type Parts = "channels" | "files" | "hasScreen" | "players" | PlayerStarting;
const defineMethod = methodsWith<Parts>();

/** Section 2.5. */
const PLAYER = z.object({
  id: z.string(),
  type: z.enum(["proxy", "aircast"]),
  protocol: z.string().nullable(),
  name: z.string(),
  icon: z.string().nullable(),
}).meta({ id: "Player" });
const PLAYER_ID = z.string().min(1).max(1024).describe("From get_available_players");
/** A day: longer than any film. */
const MAX_POSITION_SECONDS = 86_400;

const callerOf = ({ callerIsLocal }: Pick<ApiCall, "callerIsLocal">) => ({ isLocal: callerIsLocal });

/** What is to be played. Rejects with `denied` where the library, or an address, is not for this caller. */
async function sourcesOf(
  { _idx: fileIndex, item, direct_url: address, ...named }: SelectorValues & {
    readonly _idx?: number | undefined;
    readonly item?: number | undefined;
    readonly direct_url?: string | undefined;
  },
  call: ApiCall<Parts>,
): Promise<WantedStream["sources"]> {
  const { files, channels } = call.parts;
  const isNamed = Object.values(named).some((value) => value);
  if (isNamed || (item === undefined && !address)) {
    const selector = await withLocalFile(files, selectStream(named), call.mayReadFiles);
    return [{ selector, fileIndex: fileIndex ?? null, mayNamePrivate: false }];
  }
  if (!await call.isUser()) {
    throw new MillraceError("denied", "item and direct_url need the access token on other machines");
  }
  if (item === undefined) {
    const addresses = [{ address: address!, named: address!, mayNamePrivate: false, item: null }];
    const selector = { kind: "channel", name: "channel", addresses } as const;
    return [{ selector, fileIndex: null, mayNamePrivate: false }];
  }
  const starts = channelStarts(await channels.members({ item }));
  if (starts.length === 0) throw new MillraceError("not_found", "the playlist has nothing by that number to play");
  return fileIndex === undefined ? starts : starts.map((start) => ({ ...start, fileIndex }));
}

/** The methods that list players, start playback in one, and control it. */
export const PLAYER_METHODS: readonly Method[] = [
  defineMethod({
    name: "get_available_players",
    summary: "Players within reach that the caller may use; programs on the engine's machine only for callers there.",
    public: true,
    remote: true,
    params: z.object({
      content_id: SELECTORS.content_id.describe("Needed by old versions alone; any text"),
      with_reason: z.boolean().default(false).describe("Adds no_screen where it is why there is no player"),
    }),
    result: z.object({
      players: z.array(PLAYER),
      no_screen: z.literal(true).optional().describe(
        "With with_reason, where there is no player: the engine's machine has no screen for programs",
      ),
    }),
    async handle({ with_reason: isAsked }, call) {
      const players = await call.parts.players.list(callerOf(call));
      const hasNoScreen = isAsked && players.length === 0 && !call.parts.hasScreen();
      return { players, ...(hasNoScreen ? { no_screen: true as const } : {}) };
    },
  }),
  playerMethod(
    "open_in_player",
    "Plays a stream in a player of get_available_players; returns once it plays there, or says why it does not.",
    z.object({
      player_id: PLAYER_ID,
      ...SELECTORS,
      _idx: z.int().min(0).optional().describe("File of the torrent; the largest playable one by default"),
      item: ITEM_ID.optional().describe(
        "Where no stream is named: number of an item of the playlist, for which others of its channel stand in; needs the token on other machines",
      ),
      direct_url: z.string().max(8192).optional().describe(
        "Where neither is named: address of an MPEG TS or HLS stream; needs the token on other machines",
      ),
    }),
    OK,
    async ({ player_id: playerId, ...named }, call) => {
      // Refuses a request that names no stream before it asks any player.
      const sources = await sourcesOf(named, call);
      await call.parts.players.open(
        playerId,
        callerOf(call),
        (needs, signal) => startForPlayer(call, { sources, needs, playerId }, signal),
        call.signal,
      );
      return "ok" as const;
    },
  ),
  playerMethod(
    "get_player_status",
    "What a player does: its state, and where it says so position and duration in seconds and its volume, 0 to 100.",
    z.object({ player_id: PLAYER_ID }),
    z.object({
      state: z.enum(["idle", "playing", "paused"]),
      position: z.number().nullable(),
      duration: z.number().nullable(),
      volume: z.number().nullable(),
    }),
    async ({ player_id: id }, call) => {
      const { state, positionSeconds, durationSeconds, volumePercent } = await call.parts.players.status(
        id,
        callerOf(call),
        call.signal,
      );
      return { state, position: positionSeconds, duration: durationSeconds, volume: volumePercent ?? null };
    },
  ),
  playerMethod(
    "control_player",
    "Pauses, resumes, seeks or stops what a player plays, or sets how loud it is.",
    z.object({
      player_id: PLAYER_ID,
      command: z.enum(["pause", "resume", "seek", "stop", "volume"]).describe("What it is to do"),
      position: z.int().min(0).max(MAX_POSITION_SECONDS).optional().describe(
        "With seek: seconds from the beginning",
      ),
      volume: z.int().min(0).max(100).optional().describe("With volume: how loud"),
    }),
    OK,
    async ({ player_id: id, command: kind, position, volume }, call) => {
      if (kind === "volume") {
        if (volume === undefined) throw new ApiError(API_CODES.missingParameter, "missing parameter: volume");
        await call.parts.players.setVolume(id, callerOf(call), volume, call.signal);
        return "ok" as const;
      }
      if (kind === "seek" && position === undefined) {
        throw new ApiError(API_CODES.missingParameter, "missing parameter: position");
      }
      const command = kind === "seek" ? { kind, positionSeconds: position! } : { kind };
      await call.parts.players.control(id, callerOf(call), command, call.signal);
      return "ok" as const;
    },
  ),
];

/** None needs a token, but a page the user merely visits must not start anything on the television, nor watch it. */
function playerMethod<Params extends z.ZodObject, Result extends z.ZodType>(
  name: string,
  summary: string,
  params: Params,
  result: Result,
  handle: (params: z.output<Params>, call: ApiCall<Parts>) => Promise<z.input<Result>>,
): Method {
  return defineMethod({
    name,
    summary,
    public: true,
    remote: true,
    sameOriginOnly: true,
    needsNamedPage: true,
    params,
    result,
    handle,
  });
}
