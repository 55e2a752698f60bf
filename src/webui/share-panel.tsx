/** @jsxImportSource hono/jsx/dom */
/** How to open what plays elsewhere: in a player, on the phone, on the TV, in the library. */
import { BASE, call } from "./engine.ts";
import { copyText } from "./insecure.ts";
import { isLoopback, itemParams, listAddress, type Stream } from "./naming.ts";
import { QrCode } from "./qr.tsx";
import { useState } from "./state.ts";
import { errorText, text } from "./texts.ts";

/** Properties of `SharePanel`. */
export interface SharePanelProps {
  readonly title: string;
  /** Selector and file. */
  readonly stream: Stream;
  readonly infohash: string;
  /** Files of its torrent. */
  readonly files: number;
}

/** The buttons, and the code where one can be scanned. */
export function SharePanel({ title, stream, infohash, files }: SharePanelProps) {
  const [note, setNote] = useState("");
  const [shows, setShows] = useState(false);
  const playUrl = playerAddress(stream);
  const pageUrl = `${location.origin}${BASE}/${location.hash}`;
  const copy = () => copyText(playUrl).then((isCopied) => setNote(isCopied ? text("copied") : playUrl));
  const noted = (adding: Promise<unknown>) =>
    adding.then(() => setNote(text("added")), (error) => setNote(errorText(error)));
  const add = () => noted(call("playlist_add_item", { title, ...itemParams(stream, infohash) }));
  const addAll = () => noted(importSeason(stream));
  return (
    <div class="share">
      <div class="actions">
        {stream["item"] === undefined ? <button type="button" onClick={add}>{text("addToLibrary")}</button> : null}
        {files > 1 ? <button type="button" onClick={addAll}>{text("addAll", files)}</button> : null}
        <button type="button" onClick={copy}>{text("copyLink")}</button>
        <a class="button" href={`vlc://${playUrl}`}>{text("openIn")}</a>
        <a class="button" download={`${title}.m3u`} href={listAddress(title, playUrl)}>{text("listFile")}</a>
        <button type="button" aria-expanded={String(shows)} onClick={() => setShows(!shows)}>{text("onPhone")}</button>
        <span class="note" aria-live="polite">{note}</span>
      </div>
      {shows
        ? isLoopback(location.hostname)
          ? <p class="note">{text("phoneHint")}</p>
          : <QrCode value={pageUrl} label={text("qrLabel", pageUrl)} />
        : null}
    </div>
  );
}

/** The address for other players. Those that read the file itself have its own subtitles and fonts; a broadcast is no file. */
export function playerAddress(stream: Stream): string {
  const route = stream["_idx"] === undefined ? "getstream" : "getfile";
  return `${location.origin}${BASE}/engine/${route}?${new URLSearchParams(stream)}`;
}

/** Adds each file of a torrent as an item of its own. */
async function importSeason({ _idx: _file, ...torrent }: Stream): Promise<void> {
  const list = await fetch(`${BASE}/engine/playlist.m3u?${new URLSearchParams(torrent)}`);
  if (!list.ok) throw new Error(await list.text());
  await call("playlist_import", {}, await list.blob());
}
