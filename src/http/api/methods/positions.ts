/** Where files were left off: our addition, so that any device can continue from there. */
import * as z from "zod";
import { type Method, methodsWith } from "../method.ts";
import { HEX_40, INFOHASH, OK } from "../schemas.ts";

const defineMethod = methodsWith<"positions">();

/** Longest file that is remembered, s: ten days. */
const MAX_SECONDS = 864_000;

const FILE = {
  infohash: INFOHASH.describe("Of the torrent"),
  file_index: z.int().min(0).max(1_000_000).optional().describe("Place of the file in the torrent. Default: 0"),
};

/** The methods of positions. */
export const POSITION_METHODS: readonly Method[] = [
  defineMethod({
    name: "get_position",
    summary: "Where a file was left off, in seconds; 0 when it was not, or was seen to its end.",
    public: false,
    remote: true,
    params: z.object(FILE),
    result: z.object({
      infohash: HEX_40,
      file_index: z.int(),
      position: z.int(),
      duration: z.int(),
      updated_at: z.int(),
    }),
    async handle({ infohash, file_index = 0 }, { parts }) {
      const known = await parts.positions.get({ infohashHex: infohash, fileIndex: file_index });
      return {
        infohash,
        file_index,
        position: known?.positionS ?? 0,
        duration: known?.durationS ?? 0,
        updated_at: known?.updatedAt ?? 0,
      };
    },
  }),
  defineMethod({
    name: "set_position",
    summary: "Remembers where a file was left off, in whole seconds; 0 forgets it. The 5000 newest are kept.",
    public: false,
    remote: true,
    params: z.object({
      ...FILE,
      position: z.int().min(0).max(MAX_SECONDS).describe("Seconds; 0 forgets it"),
      duration: z.int().min(0).max(MAX_SECONDS).optional().describe("Length of the file, seconds"),
    }),
    result: OK,
    async handle({ infohash, file_index = 0, position, duration = 0 }, { parts }) {
      await parts.positions.set({ infohashHex: infohash, fileIndex: file_index }, position, duration);
      return "ok" as const;
    },
  }),
];
