/** What the user chose to hear and read: our addition, so that any device finds it again. */
import * as z from "zod";
import { type Method, methodsWith } from "../method.ts";
import { HEX_40, INFOHASH, OK } from "../schemas.ts";

const defineMethod = methodsWith<"trackChoices">();

const FILE = {
  infohash: INFOHASH.describe("Of the torrent"),
  file_index: z.int().min(0).max(1_000_000).optional().describe("Place of the file in the torrent. Default: 0"),
};
const LANGUAGE = z.string().max(35);
const NAME = z.string().max(300);

/** The methods of choices. */
export const CHOICE_METHODS: readonly Method[] = [
  defineMethod({
    name: "get_track_choices",
    summary: "Which sound and subtitles were chosen in a file, and which last in any file; null where none were.",
    public: false,
    remote: true,
    params: z.object(FILE),
    result: z.object({
      infohash: HEX_40,
      file_index: z.int(),
      sound: z.string().nullable(),
      subtitles: z.string().nullable(),
      preferred_sound: z.string().nullable(),
      preferred_subtitles: z.string().nullable(),
    }),
    async handle({ infohash, file_index = 0 }, { parts }) {
      const { own, last } = await parts.trackChoices.get({ infohashHex: infohash, fileIndex: file_index });
      return {
        infohash,
        file_index,
        sound: own.sound,
        subtitles: own.subtitles,
        preferred_sound: last.sound,
        preferred_subtitles: last.subtitles,
      };
    },
  }),
  defineMethod({
    name: "set_track_choices",
    summary: "Remembers which sound and subtitles were chosen in a file, and their languages for other files.",
    public: false,
    remote: true,
    params: z.object({
      ...FILE,
      sound: LANGUAGE.optional().describe("Language of the sound"),
      subtitles: NAME.optional().describe("Name of the subtitles; empty: off"),
      subtitles_language: LANGUAGE.optional().describe("Their language; empty: off"),
    }),
    result: OK,
    async handle({ infohash, file_index = 0, sound = null, subtitles = null, subtitles_language = null }, { parts }) {
      const file = { infohashHex: infohash, fileIndex: file_index };
      await parts.trackChoices.set(file, { sound, subtitles }, { sound, subtitles: subtitles_language });
      return "ok" as const;
    },
  }),
];
