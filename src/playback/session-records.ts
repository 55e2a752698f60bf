/**
 * The data that brings back a playback session that ended by itself. A viewer who pauses for an hour still holds its
 * URLs, and a player never loads the playlist of a recording again. It is kept in the state directory, so that it
 * survives a restart of the engine, too.
 */
import * as z from "zod";
import { hasCode } from "../errors.ts";
import { type AudioTranscoding, sameTranscoding } from "../media/model/audio-target.ts";
import type { HlsFormat } from "../media/model/types.ts";
import type { Clock, FilePort, Logger, Timer } from "../ports.ts";
import type { ChannelSelector } from "./channel/channel-selector.ts";
import type { CushionChoice } from "./cushion.ts";
import type { OutputKind } from "./session-base.ts";
import type { ShareHolder } from "../bytes/shares.ts";

/** Most records kept: what a household plays in a week. Each is some 300 bytes unless its magnet is long. */
const MAX_RECORDS = 256;
/** Longest record as JSON, characters: 2 MiB in all. A magnet of twenty trackers has a quarter of it. */
const MAX_RECORD_CHARS = 8192;
/** Callers remembered for each session: the one that started it, and the players it was handed to. */
const MAX_HOLDERS = 4;
/** Changes are written together after this, ms. */
const WRITE_DELAY_MS = 1000;
/** A reader of the file could play its sessions: only its owner may read it. */
const SECRET_MODE = 0o600;

/** One session as it was requested. */
export interface SessionRecord {
  /** 32 hexadecimal characters, as in its URLs. */
  readonly id: string;
  readonly infohashHex: string;
  readonly isLive: boolean;
  readonly fileIndex: number;
  readonly isDefaultFile: boolean;
  readonly output: OutputKind;
  /** As in `SessionIdentity`. */
  readonly hlsFormat: HlsFormat;
  /** `pid`, else the client's address. */
  readonly client: string;
  readonly clientHost: string;
  /** As in `SessionIdentity`. */
  readonly owner: string | null;
  readonly callerIsLocal: boolean;
  readonly preferredAudioLanguage: string | null;
  readonly transcode: AudioTranscoding | null;
  readonly clientSessionId: number;
  readonly useApiStop: boolean;
  readonly stopNotifications: boolean;
  readonly singleReader: boolean;
  /** null: the setting. */
  readonly cushion: CushionChoice | null;
  readonly withoutPeers: boolean;
  readonly nextIndexes: readonly number[];
  /** The magnet it was started with, for the peers that it names; null: another selector. */
  readonly magnet: string | null;
  /** The channel that comes by HTTP; null: another selector. */
  readonly channel: ChannelSelector | null;
  /** The holder whose share of the sessions it takes. */
  readonly holder: ShareHolder;
  /** Callers that showed its id (`Caller`). Only they bring it back by a segment's URL, which has no id in it. */
  readonly holders: readonly string[];
}

/** The caller of a segment request. */
export interface SegmentClient {
  /** Its address. */
  readonly host: string;
  /** As in `SessionIdentity`. */
  readonly owner: string | null;
  /** As `Sessions.open` names it. */
  readonly caller: string;
}

/** What a segment's URL says about its session. */
export interface SegmentQuery {
  readonly infohashHex: string;
  /** Number of the segment. */
  readonly n: number;
  /** undefined: the default file. */
  readonly fileIndex: number | undefined;
  readonly preferredAudioLanguage: string | null;
  readonly transcode: AudioTranscoding | null;
  readonly hlsFormat: HlsFormat;
}

/** Where records are kept. */
export interface RecordPlace {
  readonly files: FilePort;
  /** `sessions.json` is written there; null: records last as long as the engine. */
  readonly stateDir: string | null;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Records of sessions, the least recently used first to go. */
export class SessionRecords {
  readonly #place: RecordPlace | null;
  /** Least recently used first. */
  readonly #byId = new Map<string, SessionRecord>();
  #timer: Timer | null = null;
  #writing: Promise<void> = Promise.resolve();
  #closed = false;

  /** With null nothing is written. */
  constructor(place: RecordPlace | null = null) {
    this.#place = place?.stateDir === null ? null : place;
  }

  /** Those of the last run; none when there are none or the file is damaged, which is logged. */
  static async load(place: RecordPlace): Promise<SessionRecords> {
    const records = new SessionRecords(place);
    if (place.stateDir === null) return records;
    try {
      const maxBytes = MAX_RECORDS * MAX_RECORD_CHARS * 3;
      const text = new TextDecoder().decode(await place.files.readFile(pathIn(place.stateDir), { maxBytes }));
      for (const value of z.array(z.unknown()).parse(JSON.parse(text)).slice(-MAX_RECORDS)) {
        const { data } = RECORD.safeParse(value);
        if (data !== undefined) records.#byId.set(data.id, data);
      }
    } catch (error) {
      if (!hasCode(error, "not_found")) {
        place.log.log("warn", "the sessions of the last run are unreadable: paused players have to start again", {
          error,
        });
      }
    }
    return records;
  }

  /** Records kept. */
  get size(): number {
    return this.#byId.size;
  }

  /** Remembers a session that was started or brought back. One that is too long to keep is not. */
  keep(record: SessionRecord): void {
    const lengths = [record, { ...record, magnet: null, nextIndexes: [] }];
    const kept = lengths.find((candidate) => JSON.stringify(candidate).length <= MAX_RECORD_CHARS);
    if (kept === undefined) return;
    this.#byId.delete(kept.id);
    this.#byId.set(kept.id, kept);
    if (this.#byId.size > MAX_RECORDS) this.#dropOne();
    this.#changed();
  }

  /** The session must not come back: it was stopped on purpose, or can't be played. */
  forget(id: string): void {
    if (this.#byId.delete(id)) this.#changed();
  }

  /** The record of a playback URL; the infohash must fit the id. */
  find(infohashHex: string, id: string): SessionRecord | null {
    const record = this.#byId.get(id);
    return record !== undefined && record.infohashHex === infohashHex ? record : null;
  }

  /** `caller` showed the id of this session. */
  addHolder(id: string, caller: string): void {
    const record = this.#byId.get(id);
    if (record === undefined || record.holders.includes(caller)) return;
    this.keep({ ...record, holders: [...record.holders, caller].slice(-MAX_HOLDERS) });
  }

  /** The newest HLS session that a segment's URL fits and whose id `caller` once showed. */
  findForSegment(query: Omit<SegmentQuery, "n">, caller: string): SessionRecord | null {
    let found: SessionRecord | null = null;
    for (const record of this.#byId.values()) {
      if (record.infohashHex !== query.infohashHex || record.output !== "hls") continue;
      if (record.preferredAudioLanguage !== query.preferredAudioLanguage) continue;
      if (!record.holders.includes(caller)) continue;
      if (!record.isLive) {
        if (query.fileIndex === undefined ? !record.isDefaultFile : record.fileIndex !== query.fileIndex) continue;
        if (record.hlsFormat !== query.hlsFormat || !sameTranscoding(record.transcode, query.transcode)) continue;
      }
      found = record;
    }
    return found;
  }

  /** Resolves when everything is written; nothing is written afterwards. */
  async close(): Promise<void> {
    const isDue = this.#timer !== null;
    this.#timer?.cancel();
    this.#timer = null;
    this.#closed = true;
    if (isDue) this.#write();
    await this.#writing;
  }

  /** The oldest record of the holder with the most: a stranger's thousand sessions push out its own. */
  #dropOne(): void {
    const counts = new Map<string, number>();
    for (const { clientHost } of this.#byId.values()) counts.set(clientHost, (counts.get(clientHost) ?? 0) + 1);
    const most = Math.max(...counts.values());
    for (const { id, clientHost } of this.#byId.values()) {
      if (counts.get(clientHost) === most) return void this.#byId.delete(id);
    }
  }

  #changed(): void {
    if (this.#place === null || this.#closed || this.#timer !== null) return;
    this.#timer = this.#place.clock.setTimeout(() => {
      this.#timer = null;
      this.#write();
    }, WRITE_DELAY_MS);
  }

  #write(): void {
    const { files, stateDir, log } = this.#place!;
    this.#writing = this.#writing.then(async () => {
      const bytes = new TextEncoder().encode(JSON.stringify([...this.#byId.values()]));
      await files.makeDirectory(stateDir!);
      await files.writeFile(pathIn(stateDir!), bytes, { mode: SECRET_MODE });
    }).catch((error) => {
      log.log("warn", "sessions could not be saved: paused players will not continue after a restart", {
        error,
      });
    });
  }
}

const pathIn = (stateDir: string) => `${stateDir}/sessions.json`;

/** A record as it is read back: the file may be damaged, or come from another version. */
const RECORD = z.object({
  id: z.string().regex(/^[0-9a-f]{32}$/),
  infohashHex: z.string().regex(/^[0-9a-f]{40}$/),
  isLive: z.boolean(),
  fileIndex: z.int(),
  isDefaultFile: z.boolean(),
  output: z.enum(["ts", "hls", "file"]),
  // Files of older versions lack this.
  hlsFormat: z.enum(["auto", "ts", "fmp4"]).default("auto"),
  client: z.string(),
  clientHost: z.string(),
  owner: z.string().nullable(),
  callerIsLocal: z.boolean(),
  preferredAudioLanguage: z.string().nullable(),
  transcode: z.object({ mp3: z.boolean(), ac3: z.boolean(), onlyIfSilent: z.boolean().optional() }).nullable(),
  clientSessionId: z.int(),
  useApiStop: z.boolean(),
  stopNotifications: z.boolean(),
  singleReader: z.boolean(),
  // Files of older versions lack these.
  cushion: z.union([z.enum(["auto", "off"]), z.number().positive()]).nullable().default(null),
  withoutPeers: z.boolean().default(false),
  nextIndexes: z.array(z.int()),
  magnet: z.string().nullable(),
  // Files of older versions lack this.
  channel: z.object({
    kind: z.literal("channel"),
    name: z.string(),
    addresses: z.array(z.object({
      address: z.string(),
      named: z.string(),
      mayNamePrivate: z.boolean(),
      item: z.int().nullable(),
      account: z.object({ list: z.int(), name: z.string(), maxConnections: z.int() }).nullable().default(null),
    })).min(1),
  }).nullable().default(null),
  holder: z.object({ kind: z.enum(["own", "page", "other"]), name: z.string() }),
  holders: z.array(z.string()),
});
