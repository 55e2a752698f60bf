/** `parse_m3u_playlist` of section 4.4. */
import * as z from "zod";
import { API_CODES, ApiError } from "../codes.ts";
import { type Method, methodsWith } from "../method.ts";

const defineMethod = methodsWith<"lists">();

/** The method that reads the programme guides of a list. */
export const LIST_METHODS: readonly Method[] = [
  defineMethod({
    name: "parse_m3u_playlist",
    summary: "The programme guides that an M3U playlist names.",
    public: true,
    remote: true,
    params: z.object({ url: z.string().max(8192).describe("Address of the list") }),
    result: z.object({ epg_sources: z.array(z.string()) }),
    async handle({ url }, call) {
      const sources = await call.parts.lists.guidesAt(url, call.mayFetchPrivate, call.signal);
      if (sources === null) {
        throw new ApiError(API_CODES.invalidParameter, "invalid parameter: url: it does not lead to an M3U playlist");
      }
      return { epg_sources: sources };
    },
  }),
];
