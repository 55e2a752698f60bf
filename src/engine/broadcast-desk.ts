/** The broadcasts that callers of the method API start, watch and stop. They end with the engine. */
import { deadline } from "../bytes/deadline.ts";
import { hasCode, MillraceError } from "../errors.ts";
import type { BroadcastDesk, BroadcastFigures } from "../http/api/parts.ts";
import type { Broadcast, BroadcastOptions } from "../live/broadcast/broadcast-types.ts";
import type { MemberFigures } from "../live/swarm/member-figures.ts";
import type { FilePort } from "../ports.ts";
import { broadcastFileName } from "../inputs/broadcast-name.ts";
import { openSource } from "../inputs/open-source.ts";
import type { SourcePorts } from "../inputs/ports.ts";

/** Broadcasts at once, including those still starting: each takes a source, its upload and a window in memory. */
export const MAX_BROADCASTS = 8;

/** A caller waits this long at most for a source to deliver, ms: cameras take up to 10 s. */
const START_TIMEOUT_MS = 15_000;

/** What is said of faults of the engine itself. */
const INTERNAL = { code: "internal", message: "internal error" } as const;

/** The parts that the desk needs. */
export interface BroadcastDeskParts {
  readonly ports: SourcePorts;
  /** Directory for keys and positions; null: each start is a new broadcast. */
  readonly stateDir: string | null;
  readonly trackers: readonly string[];
  readonly broadcast: (options: BroadcastOptions) => Promise<Broadcast>;
  /** Members of a broadcast that we are connected to; empty when the broadcast is no longer ours. */
  readonly membersOf: (infohashHex: string) => readonly MemberFigures[];
}

interface Entry {
  readonly name: string;
  readonly source: string;
  readonly broadcast: Broadcast;
  readonly lostPackets: () => number | null;
  hasEnded: boolean;
  error: BroadcastFigures["error"];
}

/** Starts, lists and stops broadcasts (`BroadcastDesk`) through `SentBroadcasts`. */
export class SourceDesk implements BroadcastDesk {
  readonly #parts: BroadcastDeskParts;
  readonly #entries = new Map<string, Entry>();
  /** Names of broadcasts that are starting. */
  readonly #starting = new Set<string>();

  constructor(parts: BroadcastDeskParts) {
    this.#parts = parts;
  }

  async start({ source, name, title }: { source: string; name: string; title: string }, caller: AbortSignal) {
    const fileName = await broadcastFileName(name);
    const left = this.#takePlace(fileName);
    const late = deadline(this.#parts.ports.clock, START_TIMEOUT_MS, caller, () => {
      const seconds = START_TIMEOUT_MS / 1000;
      return new MillraceError("timeout", `source: it delivered no stream within ${seconds} s; check it`);
    });
    const { signal } = late;
    try {
      await Promise.all(left.map((broadcast) => broadcast.close()));
      const opened = await openSource(this.#parts.ports, source, {
        once: false,
        stdin: () => {
          throw new MillraceError("config", "standard input is for the command line");
        },
        resolvePath: absolutePath,
        signal,
      });
      const { stateDir, trackers } = this.#parts;
      // Not the directory of the command line's broadcasts: two broadcasters must never share one.
      const directory = stateDir === null ? null : `${stateDir}/own-broadcasts/${fileName}`;
      const isNew = directory === null || await isMissing(this.#parts.ports.files, `${directory}/broadcast.torrent`);
      const bytesPerS = isNew ? opened.bytesPerS : null;
      const broadcast = await this.#parts.broadcast({
        input: opened.input,
        name: title,
        directory,
        ...(bytesPerS === null ? {} : { bytesPerS: Math.max(1, Math.round(bytesPerS)) }),
        trackers: trackers.map((tracker) => [tracker]),
        signal,
      });
      const { description, lostPackets } = opened;
      const entry: Entry = { name, source: description, broadcast, lostPackets, hasEnded: false, error: null };
      broadcast.done.then(() => entry.hasEnded = true, (error) => {
        entry.hasEnded = true;
        const { code, message } = error instanceof MillraceError ? error : INTERNAL;
        entry.error = { code, message };
      });
      this.#entries.set(fileName, entry);
      return figuresOf(entry, []);
    } catch (error) {
      // Its messages name the command line's option.
      if (!hasCode(error, "config")) throw error;
      throw new MillraceError("invalid_argument", error.message.replace(/^--source /, "source: "), { cause: error });
    } finally {
      late.cancel();
      this.#starting.delete(fileName);
    }
  }

  list(): readonly BroadcastFigures[] {
    return [...this.#entries.values()].map((entry) =>
      figuresOf(entry, this.#parts.membersOf(entry.broadcast.metainfo.infohashHex))
    );
  }

  async stop(infohashHex: string): Promise<void> {
    for (const [fileName, { broadcast }] of this.#entries) {
      if (broadcast.metainfo.infohashHex !== infohashHex) continue;
      this.#entries.delete(fileName);
      return await broadcast.close();
    }
    throw new MillraceError("not_found", "no broadcast of this infohash was started here");
  }

  /**
   * Takes a place in one turn, and returns the ended broadcasts that gave way: close them. Throws `conflict` or
   * `too_busy`.
   */
  #takePlace(fileName: string): readonly Broadcast[] {
    if (this.#starting.has(fileName) || this.#entries.get(fileName)?.hasEnded === false) {
      throw new MillraceError("conflict", "a broadcast of this name runs: stop it first, or use another name");
    }
    const ended = [...this.#entries].filter(([, { hasEnded }]) => hasEnded);
    if (this.#entries.size - ended.length + this.#starting.size >= MAX_BROADCASTS) {
      throw new MillraceError("too_busy", `${MAX_BROADCASTS} broadcasts run: stop one first`);
    }
    const isFull = this.#entries.size + this.#starting.size >= MAX_BROADCASTS;
    const left = ended.filter(([name]) => isFull || name === fileName);
    for (const [name] of left) this.#entries.delete(name);
    this.#starting.add(fileName);
    return left.map(([, { broadcast }]) => broadcast);
  }
}

function figuresOf(entry: Entry, members: readonly MemberFigures[]): BroadcastFigures {
  const { name, source, broadcast, hasEnded, error } = entry;
  const { metainfo, contentId, magnet } = broadcast;
  const lostPackets = entry.lostPackets();
  return {
    name,
    source,
    metainfo,
    contentId,
    magnet,
    status: broadcast.status(),
    lostPackets,
    hasEnded,
    error,
    members,
  };
}

/** The engine's working directory means nothing to a caller, so paths must be absolute. */
function absolutePath(path: string): string {
  if (/^(\/|[A-Za-z]:[\\/])/.test(path)) return path.replaceAll("\\", "/");
  throw new MillraceError("config", "--source names a file: its whole path from the root is expected");
}

async function isMissing(files: FilePort, path: string): Promise<boolean> {
  try {
    await files.info(path);
    return false;
  } catch (error) {
    if (hasCode(error, "not_found")) return true;
    throw error;
  }
}
