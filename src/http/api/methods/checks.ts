/** Which items of the playlist are alive: our addition. */
import * as z from "zod";
import { MAX_SWEPT } from "../../../playlist/checks.ts";
import { type Method, methodsWith } from "../method.ts";
import { ITEM_ID, OWNER, SHORT_TEXT, TASK_ID } from "../schemas.ts";

const defineMethod = methodsWith<"checks">();

const IDS = z.array(ITEM_ID).min(1).max(MAX_SWEPT);

/** The methods that check whether peers share the items of the playlist. */
export const CHECK_METHODS: readonly Method[] = [
  defineMethod({
    name: "playlist_check",
    summary:
      `Finds out in the background which items somebody shares at the moment, two at a time, at most ${MAX_SWEPT}: ` +
      "those first that were checked longest ago. get_task follows it, cancel_task stops it.",
    public: false,
    remote: true,
    params: z.object({
      ids: IDS.optional().describe("Numbers of the items; without it all that the other parameters leave"),
      owner: OWNER,
      query: SHORT_TEXT.optional().describe("Part of the title"),
      category: SHORT_TEXT.optional().describe("Items of this category alone"),
      is_favorite: z.boolean().optional().describe("Favourites alone, or all others"),
    }),
    result: z.object({ task_id: TASK_ID }),
    handle: ({ is_favorite: isFavorite, ...params }, { parts }) => ({
      task_id: parts.checks.sweep({ ...params, isFavorite }),
    }),
  }),
  defineMethod({
    name: "playlist_get_checks",
    summary: "What the latest check found out about items; those that were never checked are left out.",
    public: false,
    remote: true,
    params: z.object({ ids: IDS.describe("Numbers of the items") }),
    result: z.object({
      checks: z.array(z.object({
        id: ITEM_ID,
        state: z.enum(["alive", "silent", "unknown"]).describe("unknown: only a player could tell"),
        peers: z.int().nullable().describe("That were connected; null for what comes by HTTP"),
        message: z.string().describe("Why, in words; empty when there is nothing to say"),
        checked_at: z.int().describe("Unix seconds"),
        last_seen: z.int().describe("When it was last alive, Unix seconds; 0: never"),
      })),
    }),
    async handle({ ids }, { parts }) {
      const checks = await parts.checks.get(ids);
      return {
        checks: checks.map(({ checkedAt, seenAt, ...check }) => ({
          ...check,
          checked_at: checkedAt,
          last_seen: seenAt,
        })),
      };
    },
  }),
];
