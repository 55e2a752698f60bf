/** What a playlist must hold after the operations that `playlist-writer.ts` told of. */

/** One told operation. */
export type Told = readonly [phase: string, kind?: string, ...rest: unknown[]];

/** A list of `count` entries; those of lists of one name share their addresses. */
export function listText(name: string, count: number): string {
  const isExternal = name.startsWith("list-");
  let text = "#EXTM3U\n";
  for (let i = 0; i < count; i++) {
    text += `#EXTINF:-1,${isExternal ? "" : name} entry ${i}\nhttp://h/${titleOf(name, i)}\n`;
  }
  return text;
}

/** Address of an entry behind `http://h/`. */
export function titleOf(name: string, i: number): string {
  return name.startsWith("list-") ? `external/${i}` : `${name}/${i}`;
}

/** What is known for sure. */
export class PlaylistModel {
  /** Addresses that must be there, once. */
  readonly addresses = new Set<string>();
  readonly favorites = new Map<number, boolean>();
  readonly titles = new Map<number, string>();
  readonly deleted = new Map<number, boolean>();
  /** What had begun and was not acknowledged; null when nothing had. */
  pending: Told | null = null;

  /** Takes the lines that one writer told. */
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
