/** Chooses which extents of all torrents to evict for space: the least recently used that no reader is about to need. */

/** Owns extents. */
export interface UnitOwner {
  /** False for torrents stored as ordinary files: they count as used, not against the limit. */
  readonly evictable: boolean;
  /** True when the unit may be evicted now. */
  mayEvict(unit: number): boolean;
  /** Deletes the unit. Resolves when the space is free. */
  evict(unit: number): Promise<void>;
}

interface Entry {
  owner: UnitOwner;
  readonly unit: number;
  bytes: number;
}

/**
 * How far the limit may be exceeded when everything is protected, bytes: the largest read-ahead of one reader. With a
 * limit smaller than what playback needs, the same pieces would otherwise be fetched over and over.
 */
const OVERSHOOT_BYTES = 64 * 1024 * 1024;

/** Pause after a search that found nothing to evict, ms: a search visits every extent. */
const SEARCH_PAUSE_MS = 25;

/** Time between two notices that the limit can't be met, ms. */
const NOTICE_PAUSE_MS = 60_000;

/** The space used by each torrent of a cache. */
export class UnitLru {
  #limitBytes: number;
  readonly #nowMs: () => number;
  readonly #onOvershoot: () => void;
  /** Least recently used first. */
  readonly #order = new Set<Entry>();
  readonly #owners = new Map<UnitOwner, Map<number, Entry>>();
  #newest: Entry | null = null;
  #evictableSum = 0;
  /** Bytes of owners that aren't evictable. */
  readonly #fixed = new Map<UnitOwner, number>();
  #fixedSum = 0;
  /** Owners of which nothing is evicted. */
  readonly #kept = new Set<UnitOwner>();
  #searchAfterMs = -Infinity;
  #noticeAfterMs = -Infinity;

  /** `limitBytes` 0 = none. `onOvershoot` is called when the limit can't be met, at most once per minute. */
  constructor(limitBytes: number, nowMs: () => number, onOvershoot: () => void) {
    this.#limitBytes = limitBytes;
    this.#nowMs = nowMs;
    this.#onOvershoot = onOvershoot;
  }

  /** 0: none. */
  get limitBytes(): number {
    return this.#limitBytes;
  }

  /** Changes the limit; resolves when what is too much is gone, as far as it may go. */
  async setLimit(limitBytes: number): Promise<void> {
    this.#limitBytes = limitBytes;
    if (limitBytes > 0) await this.evict(this.#evictableSum - limitBytes);
  }

  /** Bytes of one owner. */
  bytesOfAll(owner: UnitOwner): number {
    let sum = this.#fixed.get(owner) ?? 0;
    for (const { bytes } of this.#owners.get(owner)?.values() ?? []) sum += bytes;
    return sum;
  }

  /** Nothing of a kept owner is evicted, whatever the limit. */
  keep(owner: UnitOwner, isKept: boolean): void {
    if (isKept) this.#kept.add(owner);
    else this.#kept.delete(owner);
  }

  isKept(owner: UnitOwner): boolean {
    return this.#kept.has(owner);
  }

  /** Bytes that count towards the limit. */
  get evictableBytes(): number {
    return this.#evictableSum;
  }

  /** Bytes stored, over all torrents. */
  get usedBytes(): number {
    return this.#evictableSum + this.#fixedSum;
  }

  /** The unit holds `bytes` more (or fewer); more makes it the most recently used. */
  change(owner: UnitOwner, unit: number, bytes: number): void {
    if (!owner.evictable) {
      this.#fixed.set(owner, (this.#fixed.get(owner) ?? 0) + bytes);
      this.#fixedSum += bytes;
      return;
    }
    let units = this.#owners.get(owner);
    if (units === undefined) this.#owners.set(owner, units = new Map());
    let entry = units.get(unit);
    if (entry === undefined) {
      units.set(unit, entry = { owner, unit, bytes: 0 });
      this.#order.add(entry);
    }
    entry.bytes += bytes;
    this.#evictableSum += bytes;
    if (entry.bytes <= 0) this.#forget(entry);
    else if (bytes > 0) this.touch(owner, unit);
  }

  /** The unit was used. */
  touch(owner: UnitOwner, unit: number): void {
    if (this.#newest?.owner === owner && this.#newest.unit === unit) return;
    const entry = this.#owners.get(owner)?.get(unit);
    if (entry === undefined) return;
    this.#order.delete(entry);
    this.#order.add(entry);
    this.#newest = entry;
  }

  /** Units of an owner, least recently used first. */
  unitsOf(owner: UnitOwner): number[] {
    return [...this.#order].filter((entry) => entry.owner === owner).map((entry) => entry.unit);
  }

  /** Bytes of a unit of an evictable owner. */
  bytesOf(owner: UnitOwner, unit: number): number {
    return this.#owners.get(owner)?.get(unit)?.bytes ?? 0;
  }

  /** Everything of `owner` belongs to `heir`, which has nothing yet; when each unit was used last stays known. */
  handOver(owner: UnitOwner, heir: UnitOwner): void {
    const fixed = this.#fixed.get(owner);
    if (fixed !== undefined) this.#fixed.set(heir, fixed);
    this.#fixed.delete(owner);
    this.keep(heir, this.#kept.delete(owner));
    const units = this.#owners.get(owner);
    if (units === undefined) return;
    for (const entry of units.values()) entry.owner = heir;
    this.#owners.set(heir, units);
    this.#owners.delete(owner);
  }

  /** Forgets everything about an owner. */
  drop(owner: UnitOwner): void {
    this.#fixedSum -= this.#fixed.get(owner) ?? 0;
    this.#fixed.delete(owner);
    this.#kept.delete(owner);
    for (const entry of [...this.#owners.get(owner)?.values() ?? []]) {
      this.#evictableSum -= entry.bytes;
      this.#forget(entry);
    }
  }

  /** Evicts until `bytes` more fit. False when even the overshoot is used up. */
  makeRoom(bytes: number): boolean {
    if (this.limitBytes === 0 || this.#evictableSum + bytes <= this.limitBytes) return true;
    const now = this.#nowMs();
    if (now >= this.#searchAfterMs) {
      void this.evict(this.#evictableSum + bytes - this.limitBytes);
      if (this.#evictableSum + bytes > this.limitBytes) {
        this.#searchAfterMs = now + SEARCH_PAUSE_MS;
        this.#notice(now);
      }
    }
    return this.#evictableSum + bytes <= this.limitBytes + OVERSHOOT_BYTES;
  }

  #notice(nowMs: number): void {
    if (nowMs < this.#noticeAfterMs) return;
    this.#noticeAfterMs = nowMs + NOTICE_PAUSE_MS;
    this.#onOvershoot();
  }

  /** Evicts at least `bytes` if possible. Resolves with the number of bytes once they are free. */
  async evict(bytes: number): Promise<number> {
    let freed = 0;
    const deletions: Promise<void>[] = [];
    for (const entry of this.#order) {
      if (freed >= bytes) break;
      if (this.#kept.has(entry.owner) || !entry.owner.mayEvict(entry.unit)) continue;
      freed += entry.bytes;
      deletions.push(entry.owner.evict(entry.unit));
    }
    await Promise.all(deletions);
    return freed;
  }

  #forget(entry: Entry): void {
    this.#order.delete(entry);
    if (this.#newest === entry) this.#newest = null;
    const units = this.#owners.get(entry.owner);
    units?.delete(entry.unit);
    if (units?.size === 0) this.#owners.delete(entry.owner);
  }
}
