/** @jsxImportSource hono/jsx/dom */
/** From what was pasted or dropped to a player: analysed, files listed, played. */
import { useEffect, useState } from "hono/jsx/dom";
import { CastPage } from "./cast-page.tsx";
import { type Analysis, call, callPublic, type MediaFile, type MediaFiles, type OtherPlayer } from "./engine.ts";
import { Looking } from "./looking.tsx";
import { infohashOf, isId, type nameOf, offeredFiles, playHash, type Stream } from "./naming.ts";
import { Player } from "./player.tsx";
import { bytesText, failureText, text } from "./texts.ts";

/** Properties of `PlayPage`. */
export interface PlayPageProps {
  /** What is to be opened at once; null shows the field alone. */
  readonly wanted: ReturnType<typeof nameOf>;
  /** A transport file that was dropped. */
  readonly file: File | null;
  readonly failed: (error: unknown) => void;
}

/** What the page shows below its field. */
type Shown =
  | { readonly step: "nothing" }
  | { readonly step: "looking"; readonly infohash: string | null }
  | { readonly step: "message"; readonly message: string }
  | { readonly step: "list"; readonly url: string }
  | { readonly step: "elsewhere"; readonly url: string }
  | { readonly step: "files"; readonly media: MediaFiles; readonly stream: Stream; readonly files: MediaFile[] }
  | { readonly step: "player"; readonly files: FilesShown; readonly at: number }
  | { readonly step: "cast"; readonly player: OtherPlayer; readonly files: FilesShown; readonly title: string };

type FilesShown = Extract<Shown, { step: "files" }>;

/** The room that plays. */
export function PlayPage({ wanted, file, failed }: PlayPageProps) {
  const [shown, setShown] = useState<Shown>({ step: "nothing" });
  useEffect(() => {
    if (wanted === null && file === null) return;
    let isOver = false;
    setShown({ step: "looking", infohash: wanted === null ? null : infohashOf(wanted) });
    const opened = file === null ? openNamed(wanted!) : openFile(file);
    opened.catch((error): Shown => {
      failed(error);
      const message = error instanceof Error && error.message !== "" ? error.message : text("engineGone");
      return { step: "message", message: failureText(message) };
    }).then((next) => {
      if (!isOver) setShown(next);
    });
    return () => {
      isOver = true;
    };
  }, []);
  const submit = (event: Event) => {
    event.preventDefault();
    const value = String(new FormData(event.target as HTMLFormElement).get("q")).trim();
    if (value !== "") location.hash = playHash(value);
  };
  if (shown.step === "player") {
    const { media, stream, files } = shown.files;
    const current = files[shown.at];
    return (
      <Player
        key={`${media.infohash}/${current?.index ?? "live"}`}
        title={current === undefined ? media.name : current.filename}
        stream={current === undefined ? stream : { ...stream, _idx: String(current.index) }}
        infohash={media.infohash}
        files={files}
        at={shown.at}
        choose={(at) => setShown({ ...shown, at })}
        back={() => setShown(shown.files)}
        sent={(player) =>
          setShown({ step: "cast", player, files: shown.files, title: current?.filename ?? media.name })}
      />
    );
  }
  if (shown.step === "cast") {
    return <CastPage title={shown.title} player={shown.player} back={() => setShown(shown.files)} />;
  }
  return (
    <section class="play">
      <form class="paste" onSubmit={submit}>
        <label>
          <span>{text("pasteHere")}</span>
          <input name="q" type="text" autofocus autocomplete="off" spellcheck={false} />
        </label>
        <button type="submit">{text("open")}</button>
        <p class="hint">{text("dropHint")}</p>
      </form>
      <div class="found" aria-live="polite">
        <Found shown={shown} choose={(files, at) => setShown({ step: "player", files, at })} failed={failed} />
      </div>
    </section>
  );
}

function Found({ shown, choose, failed }: {
  readonly shown: Shown;
  readonly choose: (files: FilesShown, at: number) => void;
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
        <p>
          {text("notPlayableHere")} <a href={shown.url} rel="noreferrer">{shown.url}</a>
        </p>
      );
    case "files":
      return shown.media.type === "live"
        ? (
          <button class="big" type="button" onClick={() => choose(shown, 0)}>
            {text("play")}: {shown.media.name} <em>{text("live")}</em>
          </button>
        )
        : shown.files.length === 0
        ? <p role="alert">{text("noFiles")}</p>
        : (
          <div>
            <h1>{shown.media.name}</h1>
            <ol class="files" aria-label={text("chooseFile")}>
              {shown.files.map((file, at) => (
                <li key={file.index}>
                  <button type="button" onClick={() => choose(shown, at)}>
                    <span>{file.filename}</span>
                    {file.size === undefined ? null : <small>{bytesText(file.size)}</small>}
                  </button>
                </li>
              ))}
            </ol>
          </div>
        );
    default:
      return null;
  }
}

async function openNamed(named: NonNullable<ReturnType<typeof nameOf>>): Promise<Shown> {
  if ("stream" in named) return await openStream(named.stream);
  const { query } = named;
  const analysis = await callPublic<Analysis>("analyze_content", { query });
  // The analysis gives a lookup some seconds; an id that is not found by then may still be.
  if (isId(query) && analysis.item_url === null) return await openStream({ content_id: query });
  if (analysis.infohash !== null) {
    // The address that was pasted says more than the infohash: trackers.
    return await openStream({ url: query });
  }
  const url = analysis.item_url ?? query;
  return { step: analysis.content_type === "playlist" ? "list" : "elsewhere", url };
}

async function openStream(stream: Stream): Promise<Shown> {
  return filesOf(await callPublic<MediaFiles>("get_media_files", stream), stream);
}

async function openFile(file: File): Promise<Shown> {
  const media = await callPublic<MediaFiles>("get_media_files", {}, file);
  // The engine keeps the transport file under its infohash.
  return filesOf(media, { infohash: media.infohash });
}

function filesOf(media: MediaFiles, stream: Stream): Shown {
  return { step: "files", media, stream, files: media.type === "live" ? [] : offeredFiles(media.files) };
}
