/** Shapes of the JSON API that several methods share: section 2 of the HTTP API. */
import * as z from "zod";

/** What commands return. */
export const OK = z.literal("ok");
/** No parameters of its own. */
export const NONE = z.object({});
/** Version info, section 2.4; `darwin` is our addition. */
export const VERSION_INFO = z.object({
  version: z.string(),
  code: z.int(),
  platform: z.enum(["linux", "win32", "android", "darwin"]),
}).meta({ id: "Version" });
/** An infohash or a content id in an answer. */
export const HEX_40 = z.string().regex(/^[0-9a-f]{40}$/);
/** Code of an error, beside its words. */
export const ERROR_CODE = z.string().describe(
  "Our addition: the code of that error, for programs and translations; the same as in the header Millrace-Error",
);
/** A background task. */
export const TASK_ID = z.int().min(1).describe("Number of a background task");
/** What names a stream: a magnet link is the longest. */
const SELECTOR = z.string().max(65_536);
/** The ways to name a stream, as parameters. The first one present counts, in the order of section 4.1. */
export const SELECTORS = {
  content_id: SELECTOR.optional().describe("Content id of the stream: 40 hexadecimal digits"),
  infohash: SELECTOR.optional().describe("Infohash of the stream: 40 hexadecimal digits"),
  url: SELECTOR.optional().describe("Address of the stream's transport file"),
  magnet: SELECTOR.optional().describe("Magnet link of the stream"),
};
/** Titles and other short texts, characters. */
export const SHORT_TEXT = z.string().max(1000);
/** An item of the playlist. */
export const ITEM_ID = z.int().min(1).describe("Number of an item of the playlist");
/** Owner of the items that a call concerns; optional. */
export const OWNER = SHORT_TEXT.optional().describe("Leaves out items of other owners");
/** An infohash as callers write it. */
export const INFOHASH = z.string().toLowerCase().regex(/^[0-9a-f]{40}$/, "40 hexadecimal characters are expected");
/** A member of a broadcast that the engine is connected to. */
export const MEMBER = z.object({
  address: z.string(),
  is_source: z.boolean(),
  from: z.array(z.int()).describe("Substreams that it sends to us"),
  to: z.array(z.int()).describe("Substreams that we send to it"),
  lag: z.int().describe("Pieces behind the newest member"),
  rtt: z.int().nullable().describe("Milliseconds"),
  uplink: z.number().nullable().describe("As it says, bytes per second"),
});
