/** @jsxImportSource hono/jsx/dom */
/** The first screen below its field: what was left off, what follows it, favourites, channels, what is new. */
import type { Child } from "hono/jsx";
import { BASE, call, type Item } from "./engine.ts";
import { OnNow } from "./guide.tsx";
import { addressOf, titleOf } from "./item-row.tsx";
import { playHash } from "./naming.ts";
import { Poster } from "./poster.tsx";
import { forgetPlayed, type Played, playedLately } from "./recent.ts";
import { useEffect, useState } from "./state.ts";
import { clockText, text } from "./texts.ts";

/** Tiles of a shelf. */
const MAX_TILES = 12;
/** Channels that are looked at: not all that a library has are broadcasts. */
const CHANNELS_READ = 60;

/** The shelves; those that would be empty are left out. */
export function Home() {
  const [played, setPlayed] = useState(playedLately());
  const [favourites, setFavourites] = useState<readonly Item[]>([]);
  const [channels, setChannels] = useState<readonly Item[]>([]);
  const [added, setAdded] = useState<readonly Item[]>([]);
  useEffect(() => {
    // Without a token there is less to show, and nothing to complain of.
    call<{ playlist: Item[] }>("playlist_get", { is_favorite: "1", limit: String(MAX_TILES), show_epg: "1" })
      .then(({ playlist }) => setFavourites(playlist), () => {});
    const params = { group_by_channels: "1", page_size: String(CHANNELS_READ), show_epg: "1" };
    call<{ results: { items: Item[] }[] }>("search", params)
      .then(({ results }) => setChannels(results.map(({ items }) => items[0]!).filter(isChannel)), () => {});
    newestItems().then(setAdded, () => {});
  }, []);
  const left = played.filter(({ atS }) => atS > 0).slice(0, MAX_TILES);
  const following = played.filter(({ next }) => next !== undefined).slice(0, MAX_TILES);
  const recent = played.filter(({ atS, next }) => atS === 0 && next === undefined).slice(0, MAX_TILES);
  const forget = () => {
    forgetPlayed();
    setPlayed([]);
  };
  return (
    <div class="home">
      <Shelf title={text("continueWatching")}>{left.map(playedTile)}</Shelf>
      <Shelf title={text("nextEpisodes")}>{following.map(nextTile)}</Shelf>
      <Shelf title={text("favourites")}>{favourites.map(itemTile)}</Shelf>
      <Shelf title={text("channelsNow")}>{channels.slice(0, MAX_TILES).map(itemTile)}</Shelf>
      <Shelf title={text("addedLately")}>{added.map(itemTile)}</Shelf>
      <Shelf title={text("playedLately")}>{recent.map(playedTile)}</Shelf>
      {played.length === 0 ? null : <button type="button" onClick={forget}>{text("forgetPlayed")}</button>}
    </div>
  );
}

/** What came last and is no channel, the newest first: the engine lists the oldest first. */
async function newestItems(): Promise<Item[]> {
  const { total_items: total } = await call<{ total_items: number }>("playlist_get", { limit: "1" });
  const offset = String(Math.max(0, total - MAX_TILES));
  const { playlist } = await call<{ playlist: Item[] }>("playlist_get", { offset, limit: String(MAX_TILES) });
  return playlist.filter((item) => !isChannel(item)).reverse();
}

function isChannel({ is_live }: Item): boolean {
  return is_live === 1;
}

function Shelf({ title, children }: { readonly title: string; readonly children: Child[] }) {
  if (children.length === 0) return null;
  return (
    <section>
      <h2>{title}</h2>
      <ul class="shelf">{children}</ul>
    </section>
  );
}

function playedTile({ infohash, query, file, title, atS, durationS, still }: Played) {
  return (
    <li key={infohash}>
      <a href={playHash(query, file)}>
        <Poster title={title} picture={still ?? null} />
        <span>{title}</span>
        {atS === 0 ? null : (
          <small>
            {clockText(atS)} / {clockText(durationS)}
            <progress max={durationS} value={atS} aria-label={title} />
          </small>
        )}
      </a>
    </li>
  );
}

function nextTile({ infohash, query, next, still }: Played) {
  const { file, title } = next!;
  return (
    <li key={infohash}>
      <a href={playHash(query, file)}>
        <Poster title={title} picture={still ?? null} />
        <span>{title}</span>
      </a>
    </li>
  );
}

function itemTile(item: Item) {
  const title = titleOf(item);
  const picture = item.icons.length === 0 ? null : `${BASE}/server/api?method=get_channel_icon&id=${item.id}`;
  const now = item.epg?.now ?? null;
  return (
    <li key={item.id}>
      <a href={addressOf(item) ?? "#/library"}>
        <Poster title={title} picture={picture} isLogo />
        <span>{title}</span>
        {item.is_live === 1 ? <em>{text("live")}</em> : null}
        {item.epg === undefined || (now === null && item.epg.next === null) ? null : (
          <small>
            <OnNow epg={item.epg} />
            {now === null
              ? null
              : <progress max={now.stop - now.start} value={Date.now() / 1000 - now.start} aria-label={now.title} />}
          </small>
        )}
      </a>
    </li>
  );
}
