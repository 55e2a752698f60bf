/** Shapes of the JSON API that several methods share: section 2 of the HTTP API. */
import * as z from "zod";

/** What commands answer. */
export const OK = z.literal("ok");
/** No parameters of its own. */
export const NONE = z.object({});
/** Version info, section 2.4; `darwin` is our addition. */
export const VERSION_INFO = z.object({
  version: z.string(),
  code: z.int(),
  platform: z.enum(["linux", "win32", "android", "darwin"]),
});
/** An infohash or a content id in an answer. */
export const HEX_40 = z.string().regex(/^[0-9a-f]{40}$/);
/** A background task. */
export const TASK_ID = z.int().min(1);
