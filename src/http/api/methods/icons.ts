/** `get_channel_icon` of section 4.4. */
import * as z from "zod";
import { MillraceError } from "../../../errors.ts";
import { logoBytes } from "../logo.ts";
import { type Method, methodsWith } from "../method.ts";
import { MAX_PICTURE_BYTES, Picture } from "../picture.ts";
import { ITEM_ID, SHORT_TEXT } from "../schemas.ts";

const defineMethod = methodsWith<"fetchBytes" | "pictures" | "playlist">();

const NEVER = new AbortController().signal;

/** The method that returns the picture of a channel. */
export const ICON_METHODS: readonly Method[] = [
  defineMethod({
    name: "get_channel_icon",
    summary: "The logo, or else the poster, of an item named by id, content hash or channel name; the picture itself.",
    public: true,
    remote: true,
    params: z.object({
      id: ITEM_ID.optional(),
      common_name: SHORT_TEXT.optional().describe(
        "Name of a channel, compared as media groups are: letters and digits alone",
      ),
      item_hash: z.string().max(64).optional().describe("hash or hash_v2 of an item"),
    }),
    result: z.instanceof(Picture).meta({ type: "string", format: "binary" }),
    async handle({ id, common_name, item_hash }, call) {
      if (id === undefined && !common_name && !item_hash) {
        throw new MillraceError("missing_selector", "missing parameter: id, common_name or item_hash");
      }
      const icon = await call.parts.playlist.icon({ id, commonName: common_name, hash: item_hash });
      if (icon === null) throw new MillraceError("not_found", "there is no icon");
      const { url } = icon;
      const inline = logoBytes(url);
      if (inline !== null) return new Picture(inline);
      const { parts } = call;
      const allowPrivate = call.mayFetchPrivate && !icon.isFromPublic;
      // A picture private to callers on this machine must not reach others through the cache.
      return await parts.pictures.get(
        `${allowPrivate} ${url}`,
        // Others may be waiting for it when this caller leaves; the fetch has its own deadline.
        async () => new Picture(await parts.fetchBytes(url, { maxBytes: MAX_PICTURE_BYTES, allowPrivate }, NEVER)),
      );
    },
  }),
];
