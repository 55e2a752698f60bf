/** The bytes of one torrent on disk: reads, writes, and whether another program changed the files. */
import { hasCode, MillraceError } from "../errors.ts";
import type { Clock, FileInfo, FilePort } from "../ports.ts";
import { forEachLimited } from "../bytes/limited.ts";
import type { HandleCache } from "./handle-cache.ts";
import type { Placement } from "./placement.ts";

/** How long a file's size and time are trusted after a check during reads, ms: file systems have no finer timestamps. */
const FACTS_VALID_MS = 5;

/** Files flushed at once. */
const SYNC_CONCURRENCY = 4;

/** What happened to a unit since the last check; "written": we wrote to it, and other programs may have at the same time. */
export type UnitChange = "same" | "written" | "changed" | "missing";

interface UnitState {
  /** Number of finished writes; shows whether `modifiedMs` still belongs to the last one. */
  writes: number;
  active: number;
  /** As of `seenWrites` writes; null before the first look. */
  modifiedMs: number | null;
  seenWrites: number;
  checkedMs: number;
  /** Another program may have written since `changesIn` last reported the unit. */
  untold: boolean;
  /** The check under way, shared by all concurrent readers. */
  looking: Promise<UnitChange> | null;
}

/** Reads and writes one torrent's files. Offsets are in the torrent's byte space. */
export class Medium {
  readonly placement: Placement;
  readonly #files: FilePort;
  readonly #handles: HandleCache;
  readonly #clock: Clock;
  readonly #units = new Map<number, UnitState>();
  /** Written since the last flush. */
  readonly #unsynced = new Set<number>();
  readonly #removing = new Map<number, Promise<void>>();

  constructor(files: FilePort, handles: HandleCache, clock: Clock, placement: Placement) {
    this.#files = files;
    this.#handles = handles;
    this.#clock = clock;
    this.placement = placement;
  }

  /** Rejects with `disk_full` or `io`. */
  async write(offset: number, data: Uint8Array): Promise<void> {
    for (const part of this.placement.locate(offset, data.length)) {
      const bytes = part.length === data.length ? data : data.subarray(part.at, part.at + part.length);
      if (this.placement.isPadding(part.unit) && bytes.every((byte) => byte === 0)) continue;
      await this.#removing.get(part.unit);
      const unit = this.#unit(part.unit);
      unit.active++;
      try {
        await this.#handles.use(this.placement.path(part.unit), "write", (file) => file.write(bytes, part.position));
      } catch (error) {
        throw asIoError(error, "written");
      } finally {
        unit.active--;
        unit.writes++;
        unit.untold = true;
        this.#unsynced.add(part.unit);
      }
    }
  }

  /** Fills `into`. Rejects with `io` when the files don't hold all of it. */
  async read(offset: number, into: Uint8Array): Promise<void> {
    for (const part of this.placement.locate(offset, into.length)) {
      const target = part.length === into.length ? into : into.subarray(part.at, part.at + part.length);
      try {
        await this.#handles.use(this.placement.path(part.unit), "read", async (file) => {
          for (let done = 0; done < target.length;) {
            const count = await file.read(done === 0 ? target : target.subarray(done), part.position + done);
            if (count === 0) throw new MillraceError("io", "a cache file is shorter than it was");
            done += count;
          }
        });
      } catch (error) {
        if (!this.placement.isPadding(part.unit)) throw asIoError(error, "read");
        target.fill(0);
      }
    }
  }

  /**
   * Returns the units of this range whose files changed since the last check, and how. Checks a file that we are not
   * writing at most every `FACTS_VALID_MS`, once for all concurrent callers; marks nothing.
   */
  async changesIn(offset: number, length: number): Promise<{ readonly unit: number; readonly change: UnitChange }[]> {
    const found: { unit: number; change: UnitChange }[] = [];
    for (const { unit } of this.placement.locate(offset, length)) {
      if (this.placement.isPadding(unit)) continue;
      const state = this.#unit(unit);
      const isKnown = !state.untold && this.#clock.monotonic() - state.checkedMs < FACTS_VALID_MS;
      if (state.looking === null && isKnown) continue;
      state.looking ??= this.#lookForReaders(unit, state).finally(() => state.looking = null);
      const change = await state.looking;
      if (change !== "same") found.push({ unit, change });
    }
    return found;
  }

  /**
   * Flushes what was written since the last call and checks the files. Returns the units that can't be relied on (gone
   * or not flushed); `changesIn` reports the others.
   */
  async settle(): Promise<number[]> {
    const doubtful: number[] = [];
    const units = [...this.#unsynced];
    this.#unsynced.clear();
    await forEachLimited(units, SYNC_CONCURRENCY, async (unit) => {
      try {
        const change = await this.#look(unit);
        if (change === "missing") return void doubtful.push(unit);
        // A change seen by this check is not seen by the next one.
        if (change === "changed") this.#unit(unit).untold = true;
        await this.#handles.use(this.placement.path(unit), "write", (file) => file.sync());
      } catch {
        doubtful.push(unit);
      }
    });
    return doubtful;
  }

  /** Facts of a unit's file, null when it is gone. Later checks for changes by other programs compare with them. */
  async facts(unit: number): Promise<FileInfo | null> {
    try {
      const info = await this.#files.info(this.placement.path(unit));
      const state = this.#unit(unit);
      state.modifiedMs = info.modifiedMs;
      state.seenWrites = state.writes;
      state.checkedMs = this.#clock.monotonic();
      return info;
    } catch {
      return null;
    }
  }

  /** Creates the torrent's empty files, which no piece touches. */
  async makeEmptyFiles(): Promise<void> {
    if (this.placement.kind !== "files") return;
    for (let unit = 0; unit < this.placement.unitCount; unit++) {
      if (this.placement.unitBytes(unit) > 0 || this.placement.isPadding(unit)) continue;
      await this.#handles.use(this.placement.path(unit), "write", () => Promise.resolve());
      this.#handles.forget(this.placement.path(unit));
    }
  }

  /** Deletes the file of a unit; writes that arrive meanwhile wait. */
  remove(unit: number): Promise<void> {
    const path = this.placement.path(unit);
    this.#handles.forget(path);
    this.#unsynced.delete(unit);
    this.#units.delete(unit);
    const done: Promise<void> = this.#files.remove(path).catch(() => {}).finally(() => {
      if (this.#removing.get(unit) === done) this.#removing.delete(unit);
    });
    this.#removing.set(unit, done);
    return done;
  }

  /** Resolves when all deletions are done; closes the files. */
  async close(): Promise<void> {
    await Promise.all(this.#removing.values());
    for (const unit of this.#units.keys()) this.#handles.forget(this.placement.path(unit));
  }

  async #lookForReaders(unit: number, state: UnitState): Promise<UnitChange> {
    const { untold } = state;
    state.untold = state.active > 0;
    const change = await this.#look(unit);
    return change === "same" && untold ? "written" : change;
  }

  async #look(unit: number): Promise<UnitChange> {
    const state = this.#unit(unit);
    const { writes, modifiedMs, seenWrites } = state;
    state.checkedMs = this.#clock.monotonic();
    let info: FileInfo;
    try {
      info = await this.#files.info(this.placement.path(unit));
    } catch (error) {
      if (!hasCode(error, "not_found")) return "same";
      this.#handles.forget(this.placement.path(unit));
      return "missing";
    }
    // While we write, our own changes can't be distinguished from those of others.
    if (state.writes !== writes || state.active > 0) return "same";
    const changed = seenWrites === writes && modifiedMs !== null && modifiedMs !== info.modifiedMs;
    state.modifiedMs = info.modifiedMs;
    state.seenWrites = writes;
    if (changed) this.#handles.forget(this.placement.path(unit));
    return changed ? "changed" : "same";
  }

  #unit(unit: number): UnitState {
    let state = this.#units.get(unit);
    if (state === undefined) {
      state = {
        writes: 0,
        active: 0,
        modifiedMs: null,
        seenWrites: -1,
        checkedMs: -Infinity,
        untold: false,
        looking: null,
      };
      this.#units.set(unit, state);
    }
    return state;
  }
}

function asIoError(error: unknown, what: string): MillraceError {
  if (hasCode(error, "disk_full") || hasCode(error, "io")) return error;
  return new MillraceError("io", `a cache file could not be ${what}`, { cause: error });
}
