/**
 * Broadcasts that the user sends from this machine: our additions. They read files and addresses of this machine, so
 * only callers on it may start them.
 */
import * as z from "zod";
import { memberJson } from "../../../playback/stat.ts";
import { type Method, methodsWith } from "../method.ts";
import type { BroadcastFigures } from "../parts.ts";
import { ERROR_CODE, HEX_40, INFOHASH, MEMBER, NONE, OK } from "../schemas.ts";

const defineMethod = methodsWith<"broadcasts">();

/** A name or a title. */
const WORDS = z.string().trim().min(1).max(200);

const BROADCAST = z.object({
  name: z.string(),
  title: z.string(),
  source: z.string().describe("Without credentials"),
  content_id: HEX_40,
  infohash: HEX_40,
  magnet: z.string(),
  bitrate: z.int().describe("Announced, bytes per second"),
  input: z.int().nullable().describe("What the source delivers now, bytes per second"),
  peers: z.int(),
  upload: z.int().describe("Bytes per second"),
  uploaded: z.int(),
  head: z.int().describe("Newest piece; -1 before the first"),
  lost: z.string().nullable().describe("Why the source is lost, null while it delivers"),
  lost_packets: z.int().nullable().describe(
    "Packets that did not arrive so far: of RTP, or for udp:// transport packets, at least; null for other sources",
  ),
  message: z.string().nullable().describe("What else the user should know now"),
  ended: z.boolean(),
  error: z.string().nullable(),
  error_code: ERROR_CODE.nullable(),
  members: z.array(MEMBER),
});

function broadcastJson(figures: BroadcastFigures): z.input<typeof BROADCAST> {
  const { metainfo, status } = figures;
  return {
    name: figures.name,
    title: metainfo.name,
    source: figures.source,
    content_id: figures.contentId,
    infohash: metainfo.infohashHex,
    magnet: figures.magnet,
    bitrate: metainfo.bytesPerS,
    input: status.inputBytesPerSecond === null ? null : Math.round(status.inputBytesPerSecond),
    peers: status.peers,
    upload: Math.round(status.uploadBytesPerSecond),
    uploaded: status.uploadedBytes,
    head: status.headSeq,
    lost: status.lost,
    lost_packets: figures.lostPackets,
    message: status.message,
    ended: figures.hasEnded,
    error: figures.error?.message ?? null,
    error_code: figures.error?.code ?? null,
    members: figures.members.map(memberJson) as z.input<typeof MEMBER>[],
  };
}

/** The methods of broadcasts. */
export const BROADCAST_METHODS: readonly Method[] = [
  defineMethod({
    name: "broadcast_start",
    summary:
      "Sends a file (whole path), an address, udp://, rtp:// or rtmp:// as a live broadcast until it is stopped or the " +
      "engine ends. A later start with the same name continues under the same id. Returns when the source delivers.",
    public: false,
    remote: false,
    params: z.object({
      source: z.string().trim().min(1).max(4096).describe("A whole path, or an address"),
      name: WORDS.describe("A later start with it continues under the same id"),
      title: WORDS.optional().describe("What viewers see. Default: the name"),
    }),
    result: BROADCAST,
    handle: async ({ source, name, title = name }, { parts, signal }) =>
      broadcastJson(await parts.broadcasts.start({ source, name, title }, signal)),
  }),
  defineMethod({
    name: "broadcast_stop",
    summary: "Stops a broadcast that broadcast_start started; viewers wait for it to continue.",
    public: false,
    remote: false,
    params: z.object({
      infohash: INFOHASH.describe("Of the broadcast"),
    }),
    result: OK,
    async handle({ infohash }, { parts }) {
      await parts.broadcasts.stop(infohash);
      return "ok" as const;
    },
  }),
  defineMethod({
    name: "broadcast_list",
    summary:
      "The broadcasts that broadcast_start started, with the members of their swarms that the engine is connected to.",
    public: false,
    remote: true,
    params: NONE,
    result: z.object({ broadcasts: z.array(BROADCAST) }),
    handle: (_params, { parts }) => ({ broadcasts: parts.broadcasts.list().map(broadcastJson) }),
  }),
];
