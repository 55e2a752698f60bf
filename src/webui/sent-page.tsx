/** @jsxImportSource hono/jsx/dom */
/** The room for streams sent to this page: one video that obeys commands and reports its state. */
import { useRef } from "hono/jsx/dom";
import { Heading } from "./heading.tsx";
import { canDecode, codecNames, missingCodecs } from "./codecs.ts";
import { BASE, readStat } from "./engine.ts";
import { type Attached, attachHls } from "./hls.ts";
import { report, type SentCommand, type SentStream } from "./remote.ts";
import { useEffect, useState } from "./state.ts";
import { text } from "./texts.ts";

/** Between two reports of the position, ms. */
const REPORT_EVERY_MS = 1000;

/** Until hls.js has named what the browser refused, ms. */
const NAMED_MS = 2000;

/** Properties of `SentPage`. */
export interface SentPageProps {
  readonly stream: SentStream;
  /** The newest command; null: none yet. */
  readonly command: SentCommand | null;
  readonly close: () => void;
}

/** The player of a sent stream. */
export function SentPage({ stream, command, close }: SentPageProps) {
  const video = useRef<HTMLVideoElement>(null);
  const [trouble, setTrouble] = useState("");
  /** True after the first picture: a video that cannot be decoded pauses, too, which is no news. */
  const hasPlayed = useRef(false);
  const tell = (state: "playing" | "paused" | "ended" | "failed", reason?: string) => {
    const { currentTime: position, duration } = video.current!;
    report({ turn: stream.turn, state, position, duration, ...(reason === undefined ? {} : { reason }) });
  };
  useEffect(() => {
    const element = video.current!;
    let attached: Attached | null = null;
    let isOver = false;
    let hasFailed = false;
    const fail = (reason: string) => {
      if (hasFailed || isOver) return;
      hasFailed = true;
      setTrouble(text("failed", reason));
      tell("failed", reason);
    };
    const undecodable = (codec: string) =>
      void lackingCodecs(stream.path).then((lacking) =>
        fail(text("cannotDecode", lacking || codecNames(codec) || "?"))
      );
    attachHls(element, `${BASE}${stream.path}`, { undecodable }).then(
      async (made) => {
        if (isOver) return made.close();
        attached = made;
        // Without a click here browsers play only what is mute.
        await element.play().catch(() => {
          element.muted = true;
          return element.play();
        });
      },
    ).catch((error) => {
      // The name of a codec that it cannot decode follows in a moment.
      setTimeout(() => fail(String(error)), NAMED_MS);
    });
    const timer = setInterval(() => !element.paused && element.currentTime > 0 && tell("playing"), REPORT_EVERY_MS);
    return () => {
      isOver = true;
      clearInterval(timer);
      attached?.close();
      report({ turn: stream.turn, state: "ended" });
    };
  }, []);
  useEffect(() => {
    const element = video.current;
    if (command === null || element === null || command.turn !== stream.turn) return;
    if (command.kind === "pause") element.pause();
    else if (command.kind === "resume") void element.play();
    else if (command.kind === "seek") element.currentTime = command.positionSeconds ?? 0;
  }, [command]);
  return (
    <section class="player">
      <Heading words={stream.title} />
      <div class="screen">
        <video
          ref={video}
          controls
          playsInline
          onPlaying={() => {
            hasPlayed.current = true;
            tell("playing");
          }}
          onPause={() => hasPlayed.current && tell("paused")}
          onSeeked={() => hasPlayed.current && tell(video.current!.paused ? "paused" : "playing")}
          onEnded={() => tell("ended")}
        />
      </div>
      <p class="status" role="status">{trouble}</p>
      <div class="actions">
        <button type="button" onClick={close}>{text("back")}</button>
      </div>
    </section>
  );
}

/** What the browser lacks for the stream whose playlist is at `path`, by name; empty where that is not known. */
async function lackingCodecs(path: string): Promise<string> {
  const stat = await readStat(`${BASE}${path.replace("/m/", "/stat/").replace(/\.m3u8.*$/, "")}`, false);
  if (typeof stat !== "object") return "";
  const { picture, sound } = await missingCodecs(stat.tracks ?? [], canDecode);
  return [picture, sound].filter((name) => name !== "").join(", ");
}
