/** @jsxImportSource hono/jsx/dom */
/** Recordings: what is planned, what is recorded now and what there is; each plays here, also while it grows. */
import { useRef } from "hono/jsx/dom";
import { call } from "./engine.ts";
import { Heading } from "./heading.tsx";
import { type Attached, attachHls } from "./hls.ts";
import { useEffect, useState } from "./state.ts";
import { bytesText, clockText, errorText, hourText, text, timeText } from "./texts.ts";

/** A recording, as `recording_list` returns it. Unix seconds, seconds and bytes. */
interface Recording {
  readonly id: string;
  readonly title: string;
  readonly state: "planned" | "recording" | "done" | "failed";
  readonly from: number;
  readonly until: number;
  readonly size: number;
  readonly duration: number;
  readonly error: string | null;
  readonly manifest_url: string;
}

/** Properties of `RecordingsPage`. */
export interface RecordingsPageProps {
  readonly failed: (error: unknown) => void;
}

/** The list is read again after this, ms. */
const LOOK_EVERY_MS = 5000;

/** The room of recordings. */
export function RecordingsPage({ failed }: RecordingsPageProps) {
  const [recordings, setRecordings] = useState<readonly Recording[] | null>(null);
  const [playing, setPlaying] = useState<Recording | null>(null);
  const [trouble, setTrouble] = useState("");
  const look = () =>
    call<{ recordings: Recording[] }>("recording_list").then(({ recordings }) => setRecordings(recordings), failed);
  useEffect(() => {
    void look();
    const timer = setInterval(look, LOOK_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  const act = (method: string, id: string) => {
    setTrouble("");
    call(method, { id }).catch((error) => {
      failed(error);
      setTrouble(errorText(error));
    }).then(look);
  };
  const remove = (id: string) => {
    if (playing?.id === id) setPlaying(null);
    act("recording_delete", id);
  };
  return (
    <section class="recordings">
      <Heading words={text("recordings")} />
      <p role="alert">{trouble}</p>
      {playing === null
        ? null
        : <RecordingPlayer key={playing.id} recording={playing} close={() => setPlaying(null)} />}
      <p class={recordings === null ? "flow" : "note"}>{recordings?.length === 0 ? text("noRecordings") : ""}</p>
      <ul class="rows">
        {(recordings ?? []).map((one) => (
          <li key={one.id}>
            <div>
              <strong>{one.title || one.id}</strong>
              <small>{factsText(one)}</small>
              {one.error === null ? null : <em>{text("failed", one.error)}</em>}
            </div>
            {one.size === 0 ? null : <button type="button" onClick={() => setPlaying(one)}>{text("play")}</button>}
            {one.state === "recording"
              ? <button type="button" onClick={() => act("recording_stop", one.id)}>{text("stop")}</button>
              : null}
            <button type="button" onClick={() => remove(one.id)}>{text("remove")}</button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function factsText({ state, from, until, duration, size }: Recording): string {
  const time = `${timeText(from)}–${hourText(until)}`;
  const there = size === 0 ? [] : [clockText(duration), bytesText(size)];
  return [text(`recording_${state}`), time, ...there].join(" · ");
}

/** The picture, with the browser's own controls. */
function RecordingPlayer({ recording, close }: { readonly recording: Recording; readonly close: () => void }) {
  const video = useRef<HTMLVideoElement>(null);
  const [trouble, setTrouble] = useState("");
  useEffect(() => {
    let attached: Attached | null = null;
    let isOver = false;
    const undecodable = (codec: string) => setTrouble(text("failed", codec));
    void attachHls(video.current!, recording.manifest_url, { undecodable }).then((one) => {
      if (isOver) one.close();
      else attached = one;
      void video.current?.play().catch(() => {});
    });
    video.current!.focus();
    return () => {
      isOver = true;
      attached?.close();
    };
  }, []);
  return (
    <div class="theatre">
      <video ref={video} controls playsInline aria-label={recording.title} />
      <p role="alert">{trouble}</p>
      <button type="button" onClick={close}>{text("close")}</button>
    </div>
  );
}
