/** "Players" of section 4.4. */
import * as z from "zod";
import { selectStream } from "../../../content/selector.ts";
import { defineMethod, type Method } from "../method.ts";
import { OK } from "../schemas.ts";

/** Section 2.5. */
const PLAYER = z.object({
  id: z.string(),
  type: z.enum(["proxy", "aircast"]),
  protocol: z.string().nullable(),
  name: z.string(),
  icon: z.string().nullable(),
});
/** Longest selector: a magnet link. */
const SELECTOR = z.string().max(65_536).optional();

/** The methods that list players and start playback in one. */
export const PLAYER_METHODS: readonly Method[] = [
  defineMethod({
    name: "get_available_players",
    summary: "Players in reach; none so far, since the engine looks for none.",
    public: true,
    remote: true,
    params: z.object({ content_id: SELECTOR.describe("Needed by old versions alone; any text") }),
    result: z.object({ players: z.array(PLAYER) }),
    handle: async (_params, { parts }) => ({ players: await parts.players.list() }),
  }),
  defineMethod({
    name: "open_in_player",
    summary: "Plays a stream in a player of get_available_players.",
    public: true,
    remote: true,
    // It needs no token, and a page that the user merely visits is not to start anything on the television.
    sameOriginOnly: true,
    params: z.object({
      player_id: z.string().min(1).max(1024).describe("From get_available_players"),
      content_id: SELECTOR,
      infohash: SELECTOR,
      url: SELECTOR.describe("Address of a transport file"),
    }),
    result: OK,
    async handle({ player_id: id, ...request }, { parts, signal }) {
      // Refuses what names no stream before any player is asked.
      selectStream(request);
      await parts.players.open(id, request, signal);
      return "ok" as const;
    },
  }),
];
