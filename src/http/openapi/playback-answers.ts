/** Responses of playback: sections 2.2, 2.3, 4.2 and 6 of the HTTP API. */
import * as z from "zod";
import { MEMBER } from "../api/schemas.ts";

const FLAG = z.int().min(0).max(1);
const HEX_40 = z.string().regex(/^[0-9a-f]{40}$/);
const SESSION_ID = z.string().regex(/^[0-9a-f]{32}$/);
const TRACK = z.object({
  kind: z.string(),
  codec: z.string(),
  codecs: z.string().nullable().describe("As MediaCapabilities takes it, RFC 6381; null: not known"),
  language: z.string().nullable(),
  width: z.int().nullable(),
  height: z.int().nullable(),
});
const UNIX = z.string().describe("Unix seconds; -1: not known");

/** A start with `format=json`. */
export const STARTED = z.object({
  playback_url: z.string().describe("For the player"),
  stat_url: z.string().describe("Tells how the session does"),
  command_url: z.string().describe("Takes commands, as method=stop"),
  event_url: z.string().optional().describe("Long poll for events; with use_api_events or use_stop_notifications"),
  infohash: HEX_40,
  playback_session_id: SESSION_ID,
  is_live: FLAG,
  is_encrypted: FLAG,
  client_session_id: z.int().describe("As it was given; -1: it was not"),
});

/** `stat_url`. */
export const SESSION_STATE = z.object({
  status: z.enum(["prefuf", "dl", "prebuf"]).describe(
    "prefuf: prebuffering (prebuf under a path alias), and while a cushion is filled; dl: otherwise",
  ),
  peers: z.int(),
  speed_down: z.int().describe("KiB/s"),
  speed_up: z.int().describe("KiB/s"),
  downloaded: z.int().describe("Bytes"),
  uploaded: z.int().describe("Bytes"),
  progress: z.int().min(0).max(100).describe("Of the prebuffering, or of the cushion, percent"),
  cushion_wait_s: z.int().nullable().describe(
    "The peers are slower than the film, so playing waits once, about this many seconds; null: it does not",
  ),
  cushion_play_s: z.int().nullable().describe(
    "After that wait it plays this many seconds without a stop; null: to its end, or it does not wait",
  ),
  total_progress: z.int().min(0).max(100).describe("Of the torrent, percent"),
  network_monitor_status: z.int(),
  network_monitor_started: z.boolean(),
  debug_level: z.int(),
  disk_cache_stats: z.object({
    avail: z.int().describe("Bytes; -1: without limit"),
    disk_cache_limit: z.int().describe("Bytes; 0: without limit"),
    inactive_inuse: z.int().describe("Bytes of other streams"),
    active_inuse: z.int().describe("Bytes of this stream"),
  }),
  selected_stream_index: z.int(),
  selected_file_index: z.int(),
  stream_status: z.int(),
  manifest_access_mode: z.int(),
  client_session_id: z.int(),
  playback_session_id: SESSION_ID,
  is_encrypted: FLAG,
  is_live: FLAG,
  infohash: HEX_40,
  stall_reason: z.enum(["no_peers", "no_metadata", "slow_peers", "missing_piece", "choked", "source_silent"]).nullable()
    .describe("Why playing waits now"),
  error_message: z.string().nullable().describe("Why it does not play"),
  interface: z.object({
    name: z.string(),
    trouble: z.string().nullable().describe("Why nothing is sent; null: it is there"),
  }).optional().describe("With --interface only"),
  proxy: z.object({
    server: z.string().describe("Without a password"),
    trouble: z.string().nullable().describe("Why nothing goes through it; null: it works, or was not needed yet"),
    udp_trouble: z.string().nullable().describe("Why no datagram does: no DHT, no UDP trackers"),
  }).optional().describe("With --proxy only: what is wrong with it"),
  livepos: z.object({
    pos: UNIX,
    first_ts: UNIX,
    live_first: UNIX,
    last_ts: UNIX,
    live_last: UNIX,
    last: UNIX,
    is_live: z.enum(["0", "1"]),
    buffer_pieces: z.string(),
  }).optional().describe("Broadcasts only: what is being read, the oldest and the newest that can be"),
  channel: z.object({
    index: z.int().describe("Which of them plays, from 0"),
    count: z.int().describe("Addresses of the channel"),
    item: z.int().nullable().describe("Its item of the playlist"),
    address: z.string().describe("Without what is secret in it"),
    playing: z.boolean().describe("Data of it comes"),
    changes: z.int().describe("How often another address had to continue, or the same again"),
    reason: z.string().nullable().describe("Why the one before was left; null: none was"),
    title: z.string().nullable().describe("What a radio says that it plays; null: it says nothing"),
  }).optional().describe("Channels that come by HTTP only: where it comes from"),
  pieces: z.object({
    count: z.int(),
    cells: z.string().regex(/^[0-9]*$/).describe("A digit per cell: how much of it is here, 9: all"),
    under_way: z.array(z.int()).describe("Cells that something comes for"),
    readers: z.array(z.int()).describe("Cells where somebody reads"),
  }).nullable().optional().describe("With detail=1: the pieces of the file in at most 200 cells; null of broadcasts"),
  tracks: z.array(TRACK).nullable().optional()
    .describe("With detail=1: the tracks of the output; null while they are not known"),
  source_tracks: z.array(TRACK).nullable().optional()
    .describe("With detail=1: the tracks of the file, with those that the output lacks; null while they are not known"),
  checking: z.object({ done: z.int(), total: z.int() }).nullable().optional()
    .describe("With detail=1: pieces on the disk that are being verified; null: none"),
  peer_list: z.array(z.object({
    address: z.string(),
    client: z.string().nullable(),
    speed_down: z.int().describe("KiB/s"),
    speed_up: z.int().describe("KiB/s"),
    is_seed: z.boolean(),
    is_open: z.boolean().describe("It lets us ask"),
  })).optional().describe("With detail=1: the 30 fastest peers"),
  error_code: z.string().nullable().optional().describe("With detail=1: which kind of error; null: none"),
  members: z.array(MEMBER).optional().describe(
    "With detail=1, of a broadcast: the members that the engine is connected to",
  ),
});

/** `command_url`. */
export const COMMAND_DONE = z.literal("ok");

/** `event_url`. */
export const EVENT = z.object({
  name: z.enum(["live_changed", "prebuffering", "playing", "stalled", "missing_content", "download_stopped"]),
  params: z.record(z.string(), z.unknown()),
  id: z.int().optional().describe("Number of the event in its session; with after"),
});
