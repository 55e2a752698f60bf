/** What is cached: our additions. */
import * as z from "zod";
import { type Method, methodsWith } from "../method.ts";
import { INFOHASH, OK } from "../schemas.ts";

const defineMethod = methodsWith<"operating" | "storage">();

/** Largest limit that is taken, bytes: 1 PiB. */
const MAX_LIMIT_BYTES = 2 ** 50;
/** Least limit that is taken, bytes: one reader's two pieces of the usual largest size, for reading ahead and for what was read. */
const MIN_LIMIT_BYTES = 32 * 1024 * 1024;
/** Torrents of one answer: the name of each may be read from the disk. */
const MAX_LISTED = 200;

/** The methods of storage. */
export const STORAGE_METHODS: readonly Method[] = [
  defineMethod({
    name: "storage_list",
    summary: "The torrents of which something is cached, those used last first.",
    public: false,
    remote: true,
    params: z.object({
      first: z.int().min(0).default(0).describe("How many to leave out"),
      count: z.int().min(1).max(MAX_LISTED).default(MAX_LISTED).describe("How many to list"),
    }),
    result: z.object({
      kind: z.enum(["disk", "ram", "seed"]).describe("seed: files of the user's own, which are never removed"),
      limit: z.int().describe("Bytes; 0: no limit"),
      used: z.int().describe("Bytes, of all"),
      total: z.int().describe("Torrents, of all"),
      torrents: z.array(
        z.object({
          infohash: z.string(),
          name: z.string().nullable().describe("null: its transport file is not known any more"),
          used: z.int().describe("Bytes that are here"),
          size: z.int().describe("Bytes of the whole torrent"),
          in_use: z.boolean().describe("It is played or downloaded"),
          kept: z.boolean().describe("It stays when room is needed"),
        }).meta({ id: "CachedTorrent" }),
      ),
    }),
    async handle({ first, count }, { parts }) {
      const { kind, limitBytes, usedBytes } = parts.operating.settings().cache;
      const { total, torrents } = await parts.storage.list(first, count);
      return {
        kind,
        limit: limitBytes,
        used: usedBytes,
        total,
        torrents: torrents.map(({ infohashHex, name, usedBytes: used, totalBytes, isInUse, isKept }) => {
          return { infohash: infohashHex, name, used, size: totalBytes, in_use: isInUse, kept: isKept };
        }),
      };
    },
  }),
  defineMethod({
    name: "storage_remove",
    summary: "Removes what is cached of a torrent, kept or not, or of all that are neither kept nor in use.",
    public: false,
    remote: true,
    params: z.object({
      infohash: INFOHASH.optional().describe("Of the torrent. Default: all"),
    }),
    result: z.object({
      freed: z.int().describe("Bytes that are free now"),
      in_use: z.int().describe("Torrents that stayed because they are in use"),
    }),
    async handle({ infohash }, { parts: { storage }, signal }) {
      const { freedBytes, inUseCount } =
        await (infohash === undefined ? storage.removeAll(signal) : storage.remove(infohash, signal));
      return { freed: freedBytes, in_use: inUseCount };
    },
  }),
  defineMethod({
    name: "storage_keep",
    summary: "Lets what is cached of a torrent stay when room is needed, or lets it go again; it downloads nothing.",
    public: false,
    remote: true,
    params: z.object({
      infohash: INFOHASH.describe("Of the torrent"),
      value: z.boolean().describe("Whether it stays. Kept torrents may need half of the limit once they are whole"),
    }),
    result: OK,
    async handle({ infohash, value }, { parts }) {
      await parts.storage.keep(infohash, value);
      return "ok" as const;
    },
  }),
  defineMethod({
    name: "storage_limit",
    summary:
      "Sets how much may be cached. What is too much goes at once, except what plays or is kept. With the cache on disk it lasts until the engine's option changes.",
    public: false,
    remote: true,
    params: z.object({
      bytes: z.int().min(0).max(MAX_LIMIT_BYTES)
        .refine(
          (bytes) => bytes === 0 || bytes >= MIN_LIMIT_BYTES,
          `at least ${MIN_LIMIT_BYTES} (32 MiB), or 0 for none`,
        )
        .describe("Of all torrents together, at least 32 MiB; 0: no limit"),
    }),
    result: OK,
    async handle({ bytes }, { parts }) {
      await parts.storage.setLimit(bytes);
      return "ok" as const;
    },
  }),
];
