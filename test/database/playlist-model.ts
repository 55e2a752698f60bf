/** Models what a playlist must contain after the operations that `playlist-writer.ts` reported. */

/** One reported operation. */
export type Told = readonly [phase: string, kind?: string, ...rest: unknown[]];

/** A list of `count` entries; lists of one name share the addresses of their entries. */
export function listText(name: string, count: number): string {
  const isExternal = name.startsWith("list-");
  let text = "#EXTM3U\n";
  for (let i = 0; i < count; i++) {
    text += `#EXTINF:-1,${isExternal ? "" : name} entry ${i}\nhttp://h/${titleOf(name, i)}\n`;
  }
  return text;
}

/** Path of an entry after `http://h/`. */
export function titleOf(name: string, i: number): string {
  return name.startsWith("list-") ? `external/${i}` : `${name}/${i}`;
}

/** Everything known for certain. */
export class PlaylistModel {
  /** Addresses that must be there exactly once. */
  readonly addresses = new Set<string>();
  readonly favorites = new Map<number, boolean>();
  readonly titles = new Map<number, string>();
  readonly deleted = new Map<number, boolean>();
  /** The operation that had begun but was not acknowledged; null when there was none. */
  pending: Told | null = null;

  /** Reads the lines that one writer printed. */
  take(lines: readonly Told[]): void {
    this.pending = null;
    for (const line of lines) {
      const [phase, kind, ...rest] = line;
      this.pending = phase === "begin" ? line : null;
      if (phase !== "done") continue;
      switch (kind) {
        case "add":
          this.addresses.add(`http://h/${rest[0]}`);
          break;
        case "import":
          for (let i = 0; i < (rest[1] as number); i++) this.addresses.add(`http://h/${titleOf(rest[0] as string, i)}`);
          break;
        case "favorite":
          this.favorites.set(rest[0] as number, rest[1] as boolean);
          break;
        case "title":
          this.titles.set(rest[0] as number, rest[1] as string);
          break;
        case "remove":
        case "restore":
          this.deleted.set(rest[0] as number, kind === "remove");
          break;
      }
    }
  }

  /** Whether the pending operation may have changed `field` of the item. */
  mayHaveChanged(kind: readonly string[], id: number): boolean {
    return this.pending !== null && kind.includes(this.pending[1]!) && this.pending[2] === id;
  }
}
