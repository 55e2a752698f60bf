/** @jsxImportSource hono/jsx/dom */
/** One video: the picture, why it waits in words, its senders, and how to open it elsewhere. */
import { useRef } from "hono/jsx/dom";
import { codecNames, LACKS_NOTHING } from "./codecs.ts";
import {
  type ApiMediaFile,
  keepSession,
  type OtherPlayer,
  playNow,
  readStat,
  type Started,
  startPlayback,
  type Stat,
  stopPlayback,
} from "./engine.ts";
import { Controls } from "./controls.tsx";
import { findWay } from "./find-way.ts";
import { CAN_FILL, toggleFullScreen, useFullScreen, useIdle } from "./full-screen.ts";
import { attachDrawings } from "./drawn/drawings.ts";
import { OnAir } from "./guide.tsx";
import { Heading } from "./heading.tsx";
import { IconButton } from "./icons.tsx";
import { type Attached, attachFile, attachHls, NO_SOUNDS, type Sounds } from "./hls.ts";
import { randomId } from "./insecure.ts";
import { LiveBar } from "./live-bar.tsx";
import { joinMediaSession, listenToKeys } from "./media-keys.ts";
import { MoreMenu } from "./more-menu.tsx";
import type { Stream } from "./naming.ts";
import { isSubtitleName, removeOwnSubtitles, showOwnSubtitles } from "./own-subtitles.ts";
import { PlayOn } from "./play-on.tsx";
import { Filling, Notice, Statistics } from "./player-notice.tsx";
import { type Contact, statusOf } from "./player-status.ts";
import { keep, kept } from "./preferences.ts";
import { WatchedPosition } from "./resume.ts";
import { playerAddress } from "./share-panel.tsx";
import { useEffect, useState } from "./state.ts";
import { Stills } from "./still.ts";
import { errorText, text } from "./texts.ts";
import { FileMenu, SoundMenu, SubtitleMenu } from "./track-menu.tsx";
import { useVideoState } from "./video-state.ts";

/** Properties of `Player`. */
export interface PlayerProps {
  readonly title: string;
  /** Selector and file. */
  readonly stream: Stream;
  readonly infohash: string;
  /** All that can be played of it, and which of them this is; none of a broadcast. */
  readonly files: readonly ApiMediaFile[];
  readonly at: number;
  /** Where the address wants it to begin, s; 0: where it was left off. */
  readonly fromS: number;
  /** The picture stands there, s; called every few seconds. `durationS`: 0 of a broadcast. `still`: a newer picture. */
  readonly moved: (seconds: number, durationS: number, still: string | null) => void;
  readonly choose: (at: number) => void;
  readonly back: () => void;
  /** Called once the stream plays on another player. */
  readonly sent: (player: OtherPlayer) => void;
}

/** Time between two checks of the session, ms. */
const STAT_EVERY_MS = 1000;
/** Looks without a session before the page says so: the engine may be bringing it back. */
const LOOKS_WITHOUT = 3;
/** Between two changes of the address by playing, s of the film. */
const ADDRESS_EVERY_S = 5;
/**
 * The engine keeps a session so long that nothing of it is read or asked, s. The page asks each second, but telephones let
 * pages sleep: while the film plays that is somebody who left, in a pause somebody who comes back.
 */
const PLAYING_S = 60;
const PAUSED_S = 3600;

/** One file as it is watched. */
interface Watched {
  readonly at: number;
  readonly resume: WatchedPosition;
  readonly stills: Stills;
  /** Where the picture was last, s: the next session continues there. */
  lastS: number;
  /** What the address says, s. */
  addressedS: number;
}

/** The player. It stays the same from one file to the next: so do full screen, volume and speed. */
export function Player(props: PlayerProps) {
  const { title, stream, infohash, files, at } = props;
  const nextFile = files[at + 1];
  const next = nextFile === undefined ? null : () => props.choose(at + 1);
  const video = useRef<HTMLVideoElement>(null);
  const theatre = useRef<HTMLDivElement>(null);
  const [started, setStarted] = useState<Started | null>(null);
  const [stat, setStat] = useState<Stat | null>(null);
  const [contact, setContact] = useState<Contact>("ok");
  const [trouble, setTrouble] = useState("");
  const [refused, setRefused] = useState("");
  const [unsearchable, setUnsearchable] = useState(false);
  const [lacks, setLacks] = useState(LACKS_NOTHING);
  /** null: as the browser needs it. */
  const [withAac, setWithAac] = useState<boolean | null>(null);
  /** Which file plays as it is, without HLS; -1: none. */
  const [asItIs, setAsItIs] = useState(-1);
  const [sounds, setSounds] = useState(NO_SOUNDS);
  const language = useRef(kept("sound"));
  const playing = useRef<Attached>(null);
  const [attempt, setAttempt] = useState(0);
  const [unread, setUnread] = useState("");
  const [showsFigures, setShowsFigures] = useState(false);
  const isFull = useFullScreen();
  const playback = useVideoState(() => video.current);
  const watched = useRef<Watched>(null);
  if (watched.current?.at !== at) {
    watched.current = {
      at,
      lastS: 0,
      addressedS: -Infinity,
      resume: new WatchedPosition(infohash, stream["_idx"] ?? "0"),
      stills: new Stills(),
    };
  }
  const file = watched.current;

  useEffect(() => {
    const ending = new AbortController();
    let session: Started | null = null;
    let attached: Attached | null = null;
    let endDrawings = () => {};
    const element = video.current!;
    forget();
    const run = async () => {
      const position = file.resume.find();
      const isFile = asItIs === at;
      session = await startPlayback({
        ...stream,
        ...withAac ? { transcode_audio: "1", transcode_ac3: "1", transcode_mp3: "1" } : {},
        ...language.current ? { preferred_audio_language: language.current } : {},
        ...nextFile === undefined ? {} : { next_file_indexes: String(nextFile.index) },
        renditions: "1",
        pid: `page-${randomId()}`,
      }, isFile ? "getfile" : "manifest.m3u8");
      if (ending.signal.aborted) return stopPlayback(session);
      setStarted(session);
      void watch(session.stat_url, ending.signal, setStat, (now, before) => {
        setContact(now);
        // An engine that was started again does not know the session: the page starts another by itself.
        if (now === "over" && before === "gone") again();
      });
      if (session.is_live === 0 && !isFile) {
        const found = await findWay(session, files[at]?.filename ?? "", withAac, ending.signal);
        if (ending.signal.aborted) return;
        // After either change this runs again.
        if (found.way === "aac") return setWithAac(true);
        if (found.way === "file") return setAsItIs(at);
        setLacks(found.lacks);
        if (found.way === "none") return;
      }
      attached = await (isFile ? attachFile : attachHls)(element, session.playback_url, {
        undecodable: (codec) => setRefused(codecNames(codec) || "?"),
        heard: (news: Sounds) => ending.signal.aborted || setSounds(news),
        unsearchable: () => setUnsearchable(true),
      });
      if (ending.signal.aborted) return attached.close();
      playing.current = attached;
      if (session.is_live === 0 && !isFile) endDrawings = attachDrawings(element, session.playback_url);
      const from = file.lastS || props.fromS || await position;
      if (from > 0 && session.is_live === 0) element.currentTime = from;
      await element.play().catch(() => {});
    };
    run().catch((error) => {
      if (ending.signal.aborted) return;
      setTrouble(errorText(error));
    });
    const leave = () => {
      file.resume.tell();
      if (session !== null) stopPlayback(session);
    };
    const unlisten = listenToKeys(() => video.current, fill);
    const depart = joinMediaSession(element, title, next);
    addEventListener("pagehide", leave);
    return () => {
      removeEventListener("pagehide", leave);
      unlisten();
      depart();
      ending.abort();
      endDrawings();
      removeOwnSubtitles(element);
      attached?.close();
      leave();
    };
  }, [at, withAac, asItIs === at, attempt]);
  useEffect(() => {
    const volume = Number(kept("volume"));
    if (volume > 0 && volume <= 1) video.current!.volume = volume;
    const { classList } = document.documentElement;
    classList.add("watching");
    return () => classList.remove("watching");
  }, []);

  /** Of the session before. */
  const forget = () => {
    setTrouble("");
    setRefused("");
    setUnread("");
    setLacks(LACKS_NOTHING);
    setUnsearchable(false);
    setContact("ok");
    setStat(null);
    setSounds(NO_SOUNDS);
    playing.current = null;
  };
  const again = () => setAttempt((count) => count + 1);
  const prefer = (chosen: string) => {
    keep("sound", chosen);
    language.current = chosen;
  };
  const fill = () => CAN_FILL ? toggleFullScreen(theatre.current!) : void video.current!.requestFullscreen?.();
  const moved = (event: Event) => {
    const element = event.target as HTMLVideoElement;
    const { currentTime, duration } = element;
    if (!Number.isFinite(duration) || duration === 0) return;
    file.lastS = currentTime;
    file.resume.note(currentTime, duration);
    // A film that was left off is at its beginning before it is moved there.
    if (started === null || currentTime < 1 || Math.abs(currentTime - file.addressedS) < ADDRESS_EVERY_S) return;
    file.addressedS = currentTime;
    props.moved(currentTime, started.is_live === 1 ? 0 : duration, file.stills.take(element));
  };
  const undecodable = lacks.picture || (refused !== "" ? lacks.sound || refused : "");
  const state = statusOf({ stat, contact, trouble, undecodable, mute: lacks.sound, unsearchable });
  const isWaiting = trouble === "" && undecodable === "" && (stat === null || stat.status === "prefuf");
  const isIdle = useIdle(() => theatre.current, playback.isPaused || state.isTrouble);
  const subtitle = (own: File) => {
    setUnread("");
    void showOwnSubtitles(video.current!, own).then((isRead) => isRead || setUnread(own.name));
  };
  /** Other files than subtitles are for the page. */
  const drop = (event: DragEvent) => {
    const own = event.dataTransfer?.files[0];
    if (own === undefined || !isSubtitleName(own.name)) return;
    event.preventDefault();
    event.stopPropagation();
    subtitle(own);
  };
  const toggle = (event: Event) => {
    // A finger shows the controls; a mouse has shown them on its way.
    if ((event as PointerEvent).pointerType === "touch") return;
    const element = video.current!;
    element.paused ? void element.play().catch(() => {}) : element.pause();
  };
  const aac = (
    <button
      type="button"
      class={lacks.sound !== "" && !withAac ? "big" : ""}
      aria-pressed={String(withAac === true)}
      onClick={() => setWithAac(withAac !== true)}
    >
      {text("withAac")}
    </button>
  );
  const isMute = lacks.sound !== "" || undecodable !== "";
  return (
    <section class="player">
      <div ref={theatre} class={isIdle ? "theatre idle" : "theatre"} onDrop={drop}>
        <div class="screen">
          <video
            ref={video}
            playsInline
            tabIndex={0}
            onTimeUpdate={moved}
            onPause={() => {
              file.resume.tell();
              // Films are found again after a long pause, and more of them is here then.
              if (started !== null) keepSession(started, PAUSED_S);
            }}
            onPlay={() => {
              if (contact === "over") again();
              else if (started !== null) keepSession(started, PLAYING_S);
            }}
            onRateChange={() => video.current!.defaultPlaybackRate = video.current!.playbackRate}
            onVolumeChange={() => keep("volume", String(video.current!.volume))}
            onClick={toggle}
            onDblClick={fill}
            onEnded={() => next?.()}
          />
          {/* What draws subtitles itself does it here: over the picture, under the controls. */}
          <div class="drawings" />
          {unread === "" ? null : <p class="drawn-words" role="alert">{text("subtitlesUnread", unread)}</p>}
        </div>
        {isWaiting ? <Filling percent={stat?.progress ?? 0} /> : playback.isStarved ? <div class="wheel" /> : null}
        <div class="top">
          <IconButton icon="back" label={text("back")} press={props.back} />
          <div>
            <Heading words={title} />
            {started?.is_live === 1 ? <OnAir stream={stream} infohash={infohash} /> : null}
          </div>
          <FileMenu files={files} at={at} choose={props.choose} />
        </div>
        <Notice words={state.words} isTrouble={state.isTrouble} stat={isWaiting ? stat : null}>
          {contact === "over" || trouble !== ""
            ? <button type="button" class="big" onClick={again}>{text("again")}</button>
            : null}
          {started === null || stat === null || stat.cushion_wait_s === null
            ? null
            : <button type="button" class="big" onClick={() => playNow(started)}>{text("playAnyway")}</button>}
          {isMute && !withAac ? aac : null}
          {isMute ? <a class="button" href={`vlc://${playerAddress(stream)}`}>{text("openIn")}</a> : null}
        </Notice>
        {showsFigures && stat !== null ? <Statistics stat={stat} close={() => setShowsFigures(false)} /> : null}
        <Controls
          video={() => video.current}
          state={playback}
          stat={stat}
          liveBar={started?.is_live === 1 ? <LiveBar video={() => video.current} /> : null}
          next={next}
          isFull={isFull}
          fill={fill}
          tracks={[
            <SoundMenu
              key="sound"
              tracks={stat?.tracks ?? []}
              sounds={sounds}
              video={() => video.current}
              volume={playback.isMuted ? 0 : playback.volume}
              pick={(n, chosen) => {
                prefer(chosen);
                playing.current?.chooseSound(n);
              }}
              choose={(chosen) => {
                prefer(chosen);
                // What the player did not list it cannot decode.
                if (sounds.list.length > 1 && !withAac) setWithAac(true);
                else again();
              }}
            />,
            <SubtitleMenu key="subtitles" video={() => video.current} open={subtitle} />,
          ]}
          cast={<PlayOn stream={stream} at={() => started?.is_live === 0 ? file.lastS : 0} sent={props.sent} />}
          more={
            <MoreMenu title={title} stream={stream} infohash={infohash} files={files.length}>
              {isMute || withAac ? aac : null}
              <button type="button" aria-pressed={String(showsFigures)} onClick={() => setShowsFigures(!showsFigures)}>
                {text("statistics")}
              </button>
            </MoreMenu>
          }
        />
      </div>
    </section>
  );
}

async function watch(
  statUrl: string,
  signal: AbortSignal,
  setStat: (stat: Stat) => void,
  setContact: (now: Contact, before: Contact) => void,
): Promise<void> {
  let without = 0;
  let contact: Contact = "ok";
  const found = (now: Contact) => {
    const before = contact;
    contact = now;
    setContact(now, before);
  };
  while (!signal.aborted) {
    const stat = await readStat(statUrl, true);
    if (signal.aborted) return;
    if (typeof stat === "object") {
      without = 0;
      setStat(stat);
      found("ok");
    } else if (++without >= LOOKS_WITHOUT) found(stat);
    await new Promise((resolve) => setTimeout(resolve, STAT_EVERY_MS));
  }
}
