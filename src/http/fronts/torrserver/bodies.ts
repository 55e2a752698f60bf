/** Bodies of requests. Names of fields count in any case, as in the original: some clients write `Link` and `Hash`. */
import * as z from "zod";

/** An object of these fields, which are in lower case here. */
function anyCase<T extends z.ZodRawShape>(fields: T) {
  const lower = (value: unknown) =>
    typeof value !== "object" || value === null || Array.isArray(value)
      ? value
      : Object.fromEntries(Object.entries(value).map(([name, field]) => [name.toLowerCase(), field]));
  return z.preprocess(lower, z.object(fields));
}

const TEXT = z.string().nullish().transform((value) => value ?? "");
/** `/torrents`. */
export const REQUEST = anyCase({
  action: z.string(),
  link: TEXT,
  hash: TEXT,
  title: TEXT,
  category: TEXT,
  poster: TEXT,
  data: TEXT,
  save_to_db: z.boolean().nullish(),
});
/** `/settings`. */
export const SETTINGS = anyCase({
  action: z.string(),
  sets: anyCase({ cachesize: z.number().optional(), preloadcache: z.number().optional() }).nullish(),
});
/** `/viewed`. */
export const VIEWED = anyCase({
  action: z.string(),
  hash: TEXT,
  file_index: z.int().nullish(),
  timecode: z.number().nullish(),
});
/** `/cache`. */
export const CACHE = anyCase({ action: z.string(), hash: TEXT });
