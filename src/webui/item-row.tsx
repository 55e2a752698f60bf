/** @jsxImportSource hono/jsx/dom */
/** One line of the library: an item, or a channel with all its sources. */
import { type Check, checkText } from "./checks.ts";
import { call, type Item } from "./engine.ts";
import { OnNow } from "./guide.tsx";
import { Logo } from "./logo.tsx";
import { channelName, itemStream, playHash } from "./naming.ts";
import { useState } from "./state.ts";
import { text } from "./texts.ts";

/** A line: an item alone, or those of a channel. */
export interface Row {
  /** Of its first item. */
  readonly id: number;
  readonly items: readonly Item[];
}

/** Properties of `ItemRow`. */
export interface ItemRowProps {
  readonly row: Row;
  readonly checks: ReadonlyMap<number, Check>;
  /** Shows everything about it. */
  readonly open: () => void;
  readonly refused: (error: unknown) => void;
}

/** The line: logo, title, favourite, more. */
export function ItemRow({ row, checks, open, refused }: ItemRowProps) {
  const item = bestOf(row, checks);
  const [isFavourite, setFavourite] = useState(row.items.some(({ is_favorite }) => is_favorite));
  const title = titleOf(item);
  const check = checks.get(item.id);
  const star = () => {
    const value = !isFavourite;
    setFavourite(value);
    setFlag(row, "playlist_item_set_favorite", value).catch((error) => {
      setFavourite(!value);
      refused(error);
    });
  };
  const facts = [item.category ?? "", ...row.items.length > 1 ? [text("sources", row.items.length)] : []];
  return (
    <div class={item.enabled ? "item" : "item off"}>
      <Logo title={title} item={item} />
      <a href={addressOf(item) ?? "#/library"}>
        {title} {item.is_live === 1 ? <em>{text("live")}</em> : null}{" "}
        {item.locked ? <span aria-hidden="true">🔒</span> : null}
        <small>
          {check === undefined ? null : <span class={`pulse ${check.state}`}>{checkText(check)}</span>}
          <OnNow epg={item.epg} /> {facts.filter((fact) => fact !== "").join(" · ")}
        </small>
      </a>
      <button
        type="button"
        aria-pressed={String(isFavourite)}
        aria-label={`${text("favourite")}: ${title}`}
        onClick={star}
      >
        {isFavourite ? "★" : "☆"}
      </button>
      <button type="button" aria-haspopup="dialog" aria-label={`${text("more")}: ${title}`} onClick={open}>⋯</button>
    </div>
  );
}

/** What people call it. */
export function titleOf({ display_title, title }: Item): string {
  return display_title ?? title;
}

/** Where the page plays it, or says why it does not; null when there is nothing to play. */
export function addressOf(item: Item): string | null {
  const pasted = Object.values(itemStream(item) ?? {})[0] ?? channelName(item) ?? item.url;
  return pasted === null ? null : playHash(pasted, item.file_index);
}

/** Sets a flag of an item, or of all items of a channel. Rejects with `EngineError`. */
export async function setFlag(row: Row, method: string, value: boolean): Promise<void> {
  for (const { id } of row.items) await call(method, { id: String(id), value: value ? "1" : "0" });
}

/** The source of a channel that is alive, else the first. */
function bestOf({ items }: Row, checks: ReadonlyMap<number, Check>): Item {
  return items.find(({ id }) => checks.get(id)?.state === "alive") ?? items[0]!;
}
