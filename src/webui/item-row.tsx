/** @jsxImportSource hono/jsx/dom */
/** One line of the library. */
import { useState } from "hono/jsx/dom";
import { BASE, call, type Item, streamOf } from "./engine.ts";
import { playHash } from "./naming.ts";
import { text } from "./texts.ts";

/** Properties of `ItemRow`. */
export interface ItemRowProps {
  readonly item: Item;
  /** The list is no longer what it was. */
  readonly changed: () => void;
  readonly refused: (error: unknown) => void;
}

/** The line: logo, title, favourite, trash. */
export function ItemRow({ item, changed, refused }: ItemRowProps) {
  const [isFavourite, setFavourite] = useState(item.is_favorite);
  const stream = streamOf(item);
  const title = item.display_title ?? item.title;
  const id = String(item.id);
  const star = () => {
    const value = !isFavourite;
    setFavourite(value);
    call("playlist_item_set_favorite", { id, value: value ? "1" : "0" }).catch((error) => {
      setFavourite(!value);
      refused(error);
    });
  };
  const address = stream === null ? item.url : playHash(Object.values(stream)[0]!);
  return (
    <div class={item.enabled ? "item" : "item off"}>
      {item.icons.length === 0
        ? <span class="logo" aria-hidden="true">{title.slice(0, 1)}</span>
        : <img class="logo" loading="lazy" alt="" src={`${BASE}/server/api?method=get_channel_icon&id=${id}`} />}
      <a href={address ?? "#/library"} rel="noreferrer">
        {title} {item.is_live === 1 ? <em>{text("live")}</em> : null}
        <small>{item.category ?? ""}</small>
      </a>
      <button
        type="button"
        aria-pressed={String(isFavourite)}
        aria-label={`${text("favourite")}: ${title}`}
        onClick={star}
      >
        {isFavourite ? "★" : "☆"}
      </button>
      <button
        type="button"
        disabled={item.locked}
        aria-label={`${text("trash")}: ${title}`}
        onClick={() => call("playlist_delete_item", { id }).then(changed, refused)}
      >
        ✕
      </button>
    </div>
  );
}
