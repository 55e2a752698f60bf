/** @jsxImportSource hono/jsx/dom */
/** How to open what plays elsewhere: in a player, on the phone, on the TV, in the library. */
import { useState } from "hono/jsx/dom";
import { BASE, call, type OtherPlayer } from "./engine.ts";
import { copyText } from "./insecure.ts";
import { isLoopback, listAddress, type Stream } from "./naming.ts";
import { PlayOn } from "./play-on.tsx";
import { QrCode } from "./qr.tsx";
import { text } from "./texts.ts";

/** Properties of `SharePanel`. */
export interface SharePanelProps {
  readonly title: string;
  /** Selector and file. */
  readonly stream: Stream;
  readonly infohash: string;
  /** Where the picture stands, s; 0 of a broadcast. */
  readonly at: () => number;
  /** It plays in another player now. */
  readonly sent: (player: OtherPlayer) => void;
}

/** The buttons, and the code where one can be scanned. */
export function SharePanel({ title, stream, infohash, at, sent }: SharePanelProps) {
  const [note, setNote] = useState("");
  const [shows, setShows] = useState(false);
  const tsUrl = `${location.origin}${BASE}/engine/getstream?${new URLSearchParams(stream)}`;
  const pageUrl = `${location.origin}${BASE}/${location.hash}`;
  const copy = () => copyText(tsUrl).then((isCopied) => setNote(isCopied ? text("copied") : tsUrl));
  const add = () =>
    call("playlist_add_item", { title, infohash }).then(
      () => setNote(text("added")),
      (error) => setNote(error.message),
    );
  return (
    <div class="share">
      <div class="actions">
        <PlayOn stream={stream} at={at} sent={sent} note={setNote} />
        <button type="button" onClick={add}>{text("addToLibrary")}</button>
        <button type="button" onClick={copy}>{text("copyLink")}</button>
        <a class="button" href={`vlc://${tsUrl}`}>{text("openIn")}</a>
        <a class="button" download={`${title}.m3u`} href={listAddress(title, tsUrl)}>{text("listFile")}</a>
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
