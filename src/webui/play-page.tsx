/** @jsxImportSource hono/jsx/dom */
/** From what was pasted or dropped to a player: analysed, files listed, played. */
import { CastPage } from "./cast-page.tsx";
import {
  type ApiAnalysis,
  type ApiMediaFile,
  type ApiMediaFiles,
  call,
  callPublic,
  EngineError,
  type OtherPlayer,
  requireToken,
} from "./engine.ts";
import { Home } from "./home.tsx";
import { Heading } from "./heading.tsx";
import { Looking } from "./looking.tsx";
import { infohashOf, isId, nameOf, offeredFiles, playHash, type Stream, versionsOf } from "./naming.ts";
import { goBack, replaceAddress, rewriteAddress, scrollOfEntry } from "./navigation.ts";
import { notePlayed } from "./recent.ts";
import { Player } from "./player.tsx";
import { useEffect, useState } from "./state.ts";
import { bytesText, errorText, mistakeText, text, UNTOLD } from "./texts.ts";

/** Properties of `PlayPage`. */
export interface PlayPageProps {
  /** What is to be opened at once, as it was pasted; null shows the field alone. */
  readonly query: string | null;
  /** The file that plays, as `Place` has it, and where it begins, s. */
  readonly chosen: number | null;
  readonly atS: number;
  /** A transport file that was dropped. */
  readonly file: File | null;
  /** Opens a transport file or a list. */
  readonly open: (file: File) => void;
  readonly failed: (error: unknown) => void;
}

/** What the page shows below its field. */
type Shown =
  | { readonly step: "nothing" }
  | { readonly step: "looking"; readonly infohash: string | null }
  | { readonly step: "message"; readonly message: string }
  | { readonly step: "list"; readonly url: string }
  | { readonly step: "elsewhere"; readonly url: string; readonly message: string }
  | { readonly step: "files"; readonly media: ApiMediaFiles; readonly stream: Stream; readonly files: ApiMediaFile[] };

type FilesShown = Extract<Shown, { step: "files" }>;

/** What plays in another player. */
interface Cast {
  readonly player: OtherPlayer;
  readonly title: string;
}

/** The number of a broadcast's only file in the address. */
const LIVE_FILE = 0;

/** The room that plays. */
export function PlayPage({ query, chosen, atS, file, open, failed }: PlayPageProps) {
  const [shown, setShown] = useState<Shown>({ step: "nothing" });
  const [cast, setCast] = useState<Cast | null>(null);
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const wanted = query === null ? null : nameOf(query);
    if (wanted === null && file === null) return;
    let isOver = false;
    setShown({ step: "looking", infohash: wanted === null ? null : infohashOf(wanted) });
    const opened = file === null ? openNamed(wanted!) : openFile(file);
    opened.catch((error): Shown => {
      failed(error);
      const message = file !== null && error instanceof EngineError && error.code === 3
        ? text("notTorrent", file.name)
        : errorText(error);
      return /^https?:/i.test(query ?? "") ? { step: "elsewhere", url: query!, message } : { step: "message", message };
    }).then((next) => {
      if (isOver) return;
      setShown(next);
      if (next.step === "files" && chosen === null && query !== null) startOnly(query, next);
      // The engine keeps the transport file under its infohash: with that in the address the page can be loaded again.
      if (file !== null && next.step === "files") replaceAddress(playHash(next.media.infohash));
    });
    return () => {
      isOver = true;
    };
  }, [attempt]);
  useEffect(() => {
    if (shown.step === "files" && chosen === null) scrollTo(0, scrollOfEntry());
  }, [shown]);
  const submit = (event: Event) => {
    event.preventDefault();
    const value = String(new FormData(event.target as HTMLFormElement).get("q")).trim();
    if (value === query) setAttempt(attempt + 1);
    else if (value !== "") location.hash = playHash(value);
  };
  const at = shown.step === "files" && chosen !== null ? placeOfFile(shown, chosen) : -1;
  if (cast !== null) return <CastPage title={cast.title} player={cast.player} back={() => setCast(null)} />;
  if (at >= 0 && query !== null) {
    const { media, stream, files } = shown as FilesShown;
    const current = files[at];
    const following = files[at + 1];
    const title = current === undefined ? media.name : current.filename;
    const hashOf = (place: number) => playHash(query, files[place]?.index ?? LIVE_FILE);
    return (
      <Player
        key={media.infohash}
        title={title}
        stream={current === undefined ? stream : { ...stream, _idx: String(current.index) }}
        infohash={media.infohash}
        files={files}
        at={at}
        fromS={atS}
        choose={(place) => replaceAddress(hashOf(place))}
        moved={(seconds, durationS, still) => {
          const place = current?.index ?? LIVE_FILE;
          if (durationS > 0) rewriteAddress(playHash(query, place, seconds));
          notePlayed({
            ...{ infohash: media.infohash, query, file: place, title, atS: seconds, durationS },
            ...still === null ? {} : { still },
            ...following === undefined ? {} : { next: { file: following.index, title: following.filename } },
          });
        }}
        back={() => goBack(files.length > 1 ? playHash(query) : "#/play")}
        sent={(player) => {
          setCast({ player, title });
          // The way back leads to the files: here nothing plays any more.
          replaceAddress(playHash(query));
        }}
      />
    );
  }
  return (
    <section class="play">
      {shown.step === "files" ? null : <Heading class="unseen" words={text("play")} />}
      <form class="paste" onSubmit={submit}>
        <label>
          <span>{text("pasteHere")}</span>
          <input name="q" type="text" autofocus autocomplete="off" spellcheck={false} />
        </label>
        <button type="submit">{text("open")}</button>
        <p class="hint">
          <label class="button">
            {text("chooseFileHere")}
            <input
              type="file"
              accept=".torrent,.m3u,.m3u8,application/x-bittorrent,audio/x-mpegurl"
              onChange={(event: Event) => {
                const picked = (event.target as HTMLInputElement).files?.[0];
                if (picked !== undefined) open(picked);
              }}
            />
          </label>{" "}
          <span>{text("dropHint")}</span>
        </p>
      </form>
      <div class="found" aria-live="polite">
        <Found
          shown={shown}
          choose={(index) => query !== null && (location.hash = playHash(query, index))}
          failed={failed}
        />
      </div>
      {query === null && file === null ? <Home /> : null}
    </section>
  );
}

/** Nobody has to choose where there is one thing to play. */
function startOnly(query: string, { media, files }: FilesShown): void {
  if (media.type === "live") replaceAddress(playHash(query, LIVE_FILE));
  else if (files.length === 1) replaceAddress(playHash(query, files[0]!.index));
}

/** Where the file stands among those that are offered; 0 of a broadcast, -1: nowhere. */
function placeOfFile({ media, files }: FilesShown, chosen: number): number {
  return media.type === "live" ? 0 : files.findIndex(({ index }) => index === chosen);
}

function Found({ shown, choose, failed }: {
  readonly shown: Shown;
  readonly choose: (index: number) => void;
  readonly failed: (error: unknown) => void;
}) {
  switch (shown.step) {
    case "looking":
      return <Looking infohash={shown.infohash} />;
    case "message":
      return <p role="alert">{shown.message}</p>;
    case "list":
      return (
        <p>
          {text("isList")}{" "}
          <button
            type="button"
            onClick={() => call("playlist_import", { url: shown.url }).then(() => location.hash = "#/library", failed)}
          >
            {text("importList")}
          </button>
        </p>
      );
    case "elsewhere":
      return (
        <div>
          <p role="alert">{shown.message}</p>
          <p>
            {text("notPlayableHere")} <a href={shown.url} rel="noreferrer">{shown.url}</a>
          </p>
        </div>
      );
    case "files": {
      const versions = versionsOf(shown.media);
      return (
        <div>
          <Heading words={shown.media.name} />
          {versions === null ? null : <p class="note">{versions}</p>}
          <Files shown={shown} choose={choose} />
        </div>
      );
    }
    default:
      return null;
  }
}

function Files({ shown: { media, files }, choose }: {
  readonly shown: FilesShown;
  readonly choose: (index: number) => void;
}) {
  if (media.type === "live") {
    return (
      <button class="big" type="button" onClick={() => choose(LIVE_FILE)}>
        {text("play")}: {media.name} <em>{text("live")}</em>
      </button>
    );
  }
  if (files.length === 0) return <p role="alert">{text("noFiles")}</p>;
  return (
    <ol class="files" aria-label={text("chooseFile")}>
      {files.map((file) => (
        <li key={file.index}>
          <button type="button" onClick={() => choose(file.index)}>
            <span>{file.filename}</span>
            {file.size === undefined ? null : <small>{bytesText(file.size)}</small>}
          </button>
        </li>
      ))}
    </ol>
  );
}

async function openNamed(named: NonNullable<ReturnType<typeof nameOf>>): Promise<Shown> {
  if ("stream" in named) return await openStream(named.stream);
  if ("channel" in named) return await openChannel(named.channel, named.title);
  const { query } = named;
  const mistake = mistakeText(query);
  if (mistake !== null) return { step: "message", message: mistake };
  const analysis = await callPublic<ApiAnalysis>("analyze_content", { query });
  // The analysis gives a lookup some seconds; an id that is not found by then may still be.
  if (isId(query) && analysis.item_url === null) return await openStream({ content_id: query });
  if (analysis.infohash !== null) {
    // The address that was pasted says more than the infohash: trackers.
    return await openStream({ url: query });
  }
  const url = analysis.item_url ?? query;
  if (analysis.content_type === "playlist") return { step: "list", url };
  if (CHANNELS.has(analysis.content_type)) return await openChannel({ direct_url: url }, analysis.title);
  return { step: "elsewhere", url, message: "" };
}

/** What comes by HTTP and that the engine plays, as the analysis calls it. */
const CHANNELS: ReadonlySet<string> = new Set(["hls", "hls_vode", "direct_stream"]);

/** Nothing is asked of its server before it plays: some let nobody in twice. */
async function openChannel(stream: Stream, title: string): Promise<Shown> {
  await requireToken();
  const name = title || text("live");
  const infohash = Object.values(stream)[0]!;
  return {
    step: "files",
    media: { infohash, name, type: "live", transport_type: "hls", files: [] },
    stream,
    files: [],
  };
}

/** Answers of the engine that a search goes on; each takes 8 s, and a search a minute. */
const MAX_ASKED = 20;

async function openStream(stream: Stream): Promise<Shown> {
  for (let asked = 1;; asked++) {
    try {
      return filesOf(await callPublic<ApiMediaFiles>("get_media_files", stream), stream);
    } catch (error) {
      const goesOn = error instanceof EngineError && error.code === 6 && error.message !== UNTOLD;
      if (!goesOn || asked === MAX_ASKED) throw error;
    }
  }
}

async function openFile(file: File): Promise<Shown> {
  const media = await callPublic<ApiMediaFiles>("get_media_files", {}, file);
  // The engine keeps the transport file under its infohash.
  return filesOf(media, { infohash: media.infohash });
}

function filesOf(media: ApiMediaFiles, stream: Stream): Shown {
  return { step: "files", media, stream, files: media.type === "live" ? [] : offeredFiles(media.files) };
}
