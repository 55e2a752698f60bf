/** @jsxImportSource hono/jsx/dom */
/** One video: the picture, why it waits in words, who sends it, and how to open it elsewhere. */
import { useEffect, useRef, useState } from "hono/jsx/dom";
import { BASE, call, EngineError, readStat, type Started, startPlayback, type Stat, stopPlayback } from "./engine.ts";
import { type Attached, attachHls } from "./hls.ts";
import { listAddress, type Stream } from "./naming.ts";
import { bytesText, reasonText, text } from "./texts.ts";

/** Properties of `Player`. */
export interface PlayerProps {
  readonly title: string;
  /** Selector and file. */
  readonly stream: Stream;
  readonly infohash: string;
  readonly hasNext: boolean;
  readonly next: () => void;
  readonly back: () => void;
}

/** Between two looks at the session, ms. */
const STAT_EVERY_MS = 1000;
/** The engine has to be silent for so many looks before the page says so: it may be busy. */
const SILENT_LOOKS = 3;
/** A position is worth keeping from here on, s, and is forgotten this long before the end. */
const RESUME_FROM_S = 30;
/** Steps of the arrow keys, s. */
const SEEK_STEP_S = 10;

/** The player. */
export function Player(props: PlayerProps) {
  const { title, stream, infohash } = props;
  const video = useRef<HTMLVideoElement>(null);
  const [started, setStarted] = useState<Started | null>(null);
  const [stat, setStat] = useState<Stat | null>(null);
  const [trouble, setTrouble] = useState("");
  const [withAac, setWithAac] = useState(false);
  const [note, setNote] = useState("");
  const resumeKey = `millrace-at/${infohash}/${stream["_idx"] ?? ""}`;

  useEffect(() => {
    const ending = new AbortController();
    let session: Started | null = null;
    let attached: Attached | null = null;
    const run = async () => {
      const sound = withAac ? { transcode_audio: "1", transcode_ac3: "1", transcode_mp3: "1" } : {};
      session = await startPlayback({ ...stream, ...sound, pid: `page-${crypto.randomUUID()}` });
      if (ending.signal.aborted) return stopPlayback(session);
      setStarted(session);
      void watch(session.stat_url, ending.signal, setStat, setTrouble);
      const element = video.current!;
      attached = await attachHls(element, session.playback_url, (codec) => setTrouble(text("cannotDecode", codec)));
      if (ending.signal.aborted) return attached.close();
      const at = Number(localStorage.getItem(resumeKey));
      if (at > 0 && session.is_live === 0) element.currentTime = at;
      await element.play().catch(() => {});
    };
    run().catch((error) => {
      const message = error instanceof EngineError && error.message !== "" ? error.message : text("engineGone");
      setTrouble(text("failed", message));
    });
    const leave = () => session !== null && stopPlayback(session);
    addEventListener("pagehide", leave);
    return () => {
      removeEventListener("pagehide", leave);
      ending.abort();
      attached?.close();
      leave();
    };
  }, [withAac]);

  const keep = (event: Event) => {
    const { currentTime, duration } = event.target as HTMLVideoElement;
    if (!Number.isFinite(duration) || currentTime < RESUME_FROM_S) return;
    if (currentTime > duration - RESUME_FROM_S) localStorage.removeItem(resumeKey);
    else localStorage.setItem(resumeKey, String(Math.floor(currentTime)));
  };
  const keys = (event: KeyboardEvent) => {
    const element = video.current;
    if (element === null) return;
    if ((event.target as HTMLElement).closest("button, a, input")) return;
    if (event.key === " " || event.key === "k") element.paused ? void element.play() : element.pause();
    else if (event.key === "ArrowLeft") element.currentTime -= SEEK_STEP_S;
    else if (event.key === "ArrowRight") element.currentTime += SEEK_STEP_S;
    else if (event.key === "f") void element.requestFullscreen();
    else if (event.key === "m") element.muted = !element.muted;
    else return;
    event.preventDefault();
  };
  useEffect(() => {
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);

  const tsUrl = `${location.origin}${BASE}/engine/getstream?${new URLSearchParams(stream)}`;
  const add = () => {
    call("playlist_add_item", { title, infohash }).then(
      () => setNote(text("added")),
      (error) => setNote(error.message),
    );
  };
  return (
    <section class="player">
      <h1>{title}</h1>
      <div class="screen">
        <video ref={video} controls playsInline onTimeUpdate={keep} onEnded={() => props.hasNext && props.next()} />
        <Race stat={stat} />
      </div>
      <p class="status" role="status">
        {trouble !== "" ? trouble : stat === null ? text("looking") : statusText(stat)}
      </p>
      <p class="figures">{stat === null ? "" : figuresText(stat)}</p>
      <div class="actions">
        <button type="button" onClick={props.back}>{text("back")}</button>
        {props.hasNext ? <button type="button" onClick={props.next}>{text("next")}</button> : null}
        {started?.is_live === 1
          ? <button type="button" onClick={() => toLive(video.current!)}>{text("toLive")}</button>
          : null}
        <button type="button" aria-pressed={String(withAac)} onClick={() => setWithAac(!withAac)}>
          {text("withAac")}
        </button>
        {document.pictureInPictureEnabled
          ? (
            <button type="button" onClick={() => void video.current!.requestPictureInPicture()}>
              {text("pictureInPicture")}
            </button>
          )
          : null}
        <button
          type="button"
          onClick={() => navigator.clipboard.writeText(tsUrl).then(() => setNote(text("copied")), () => setNote(tsUrl))}
        >
          {text("copyLink")}
        </button>
        <a class="button" href={`vlc://${tsUrl}`}>{text("openIn")}</a>
        <a class="button" download={`${title}.m3u`} href={listAddress(title, tsUrl)}>{text("listFile")}</a>
        <button type="button" onClick={add}>{text("addToLibrary")}</button>
        <span class="note" aria-live="polite">{note}</span>
      </div>
    </section>
  );
}

/** The race: how much of the torrent is here, with the water moving while bytes come. */
function Race({ stat }: { readonly stat: Stat | null }) {
  const percent = stat === null ? 0 : stat.status === "prefuf" ? stat.progress : stat.total_progress;
  return (
    <div class={stat !== null && stat.speed_down > 0 ? "race moving" : "race"} aria-hidden="true">
      <progress max={100} value={percent} />
    </div>
  );
}

async function watch(
  statUrl: string,
  signal: AbortSignal,
  setStat: (stat: Stat | null) => void,
  setTrouble: (message: string) => void,
): Promise<void> {
  let silent = 0;
  while (!signal.aborted) {
    const stat = await readStat(statUrl);
    if (signal.aborted) return;
    silent = stat === null ? silent + 1 : 0;
    if (stat !== null) setStat(stat);
    else if (silent === SILENT_LOOKS) setTrouble(text("sessionOver"));
    await new Promise((resolve) => setTimeout(resolve, STAT_EVERY_MS));
  }
}

function statusText({ status, progress, stall_reason: reason, error_message: error }: Stat): string {
  if (error !== null) return error;
  if (reason !== null) return reasonText(reason) ?? reason;
  return status === "prefuf" ? text("prebuffering", progress) : "";
}

function figuresText({ peers, speed_down, speed_up, total_progress }: Stat): string {
  const rate = (kibPerS: number) => bytesText(kibPerS * 1024);
  const parts = [text("peers", peers), text("down", rate(speed_down)), text("up", rate(speed_up))];
  return [...parts, ...total_progress > 0 ? [text("here", total_progress)] : []].join(" · ");
}

function toLive(video: HTMLVideoElement): void {
  const { seekable } = video;
  if (seekable.length > 0) video.currentTime = seekable.end(seekable.length - 1) - 2;
}
