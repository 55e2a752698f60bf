/** What is cached: our additions. */
import * as z from "zod";
import { type Method, methodsWith } from "../method.ts";
import { INFOHASH, OK } from "../schemas.ts";

const defineMethod = methodsWith<"operating" | "storage">();

/** Largest limit that is taken, bytes: 1 PiB. */
const MAX_LIMIT_BYTES = 2 ** 50;
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
          in_use: z.boolean().describe("It plays, or did half a minute ago"),
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
        torrents: torrents.map(({ infohashHex, name, usedBytes: used, totalBytes, isInUse }) => {
          return { infohash: infohashHex, name, used, size: totalBytes, in_use: isInUse };
        }),
      };
    },
  }),
  defineMethod({
    name: "storage_remove",
    summary: "Removes what is cached of a torrent, or of all that are not in use; returns the bytes that are free now.",
    public: false,
    remote: true,
    params: z.object({
      infohash: INFOHASH.optional().describe("Of the torrent. Default: all"),
    }),
    result: z.object({ freed: z.int().describe("Bytes") }),
    handle: async ({ infohash }, { parts }) => ({ freed: await parts.storage.remove(infohash ?? null) }),
  }),
  defineMethod({
    name: "storage_limit",
    summary:
      "Sets how much may be cached, until the engine ends; 0 is no limit. What is too much goes at once, except what plays.",
    public: false,
    remote: true,
    params: z.object({ bytes: z.int().min(0).max(MAX_LIMIT_BYTES).describe("Of all torrents together; 0: no limit") }),
    result: OK,
    async handle({ bytes }, { parts }) {
      await parts.storage.setLimit(bytes);
      return "ok" as const;
    },
  }),
];
