/** @jsxImportSource hono/jsx/dom */
/** Which sound is heard, which subtitles are shown, which file plays. */
import { useRef } from "hono/jsx/dom";
import type { ApiTrack } from "./codecs.ts";
import type { ApiMediaFile } from "./engine.ts";
import type { Sounds } from "./hls.ts";
import { VOLUME_STEP } from "./media-keys.ts";
import { Menu, Stepper } from "./menu.tsx";
import { isRemoved, showsOwn } from "./own-subtitles.ts";
import { keep, kept } from "./preferences.ts";
import { useEffect, useState } from "./state.ts";
import { SubtitleDelay } from "./subtitle-delay.ts";
import { languageText, secondsText, text } from "./texts.ts";

/** Properties of `SoundMenu`. */
export interface SoundMenuProps {
  /** Of the output, in its order: the first sound is heard where the player has no choice. */
  readonly tracks: readonly ApiTrack[];
  readonly sounds: Sounds;
  /** Changes to a sound of the player's. */
  readonly pick: (n: number, language: string) => void;
  /** Plays again with the sound of a language. */
  readonly choose: (language: string) => void;
  readonly video: () => HTMLVideoElement | null;
  /** From 0 to 1. */
  readonly volume: number;
}

/** The sounds that the player can change to, the languages that only another start has, and the volume. */
export function SoundMenu({ tracks, sounds: { list, heard }, pick, choose, video, volume }: SoundMenuProps) {
  const picked = list.map(({ name, lang = "" }, n) => ({
    value: String(n),
    label: lang === "" ? name : [languageText(lang), ...name.split(", ").slice(1)].join(", "),
  }));
  const known = new Set(list.map(({ lang = "" }) => languageText(lang)));
  const languages = [
    ...new Set(tracks.filter(({ kind }) => kind === "audio").flatMap(({ language }) => language ?? [])),
  ];
  const others = languages.filter((language) => list.length < 2 || !known.has(languageText(language)))
    .map((language) => ({ value: language, label: languageText(language) }));
  const choices = list.length < 2 ? others : [...picked, ...others];
  const louder = (step: number) => () => {
    const element = video()!;
    element.muted = false;
    element.volume = Math.min(1, Math.max(0, Math.round(10 * (element.volume + step)) / 10));
  };
  return (
    <Menu
      label={text("sound")}
      icon="sound"
      choices={choices.length < 2 ? [] : choices}
      value={list.length < 2 ? languages[0]! : String(heard)}
      choose={(value) =>
        list.length >= 2 && /^\d+$/.test(value) ? pick(Number(value), list[Number(value)]!.lang ?? "") : choose(value)}
    >
      <Stepper
        label={text("volume")}
        value={`${Math.round(100 * volume)} %`}
        lower={louder(-VOLUME_STEP)}
        raise={louder(VOLUME_STEP)}
      />
    </Menu>
  );
}

/** Properties of `SubtitleMenu`. */
export interface SubtitleMenuProps {
  readonly video: () => HTMLVideoElement | null;
  /** Shows a file of the user's own. */
  readonly open: (file: File) => void;
}

/** The place of no subtitles. */
const OFF = -1;
/** One press moves them by this, s. */
const DELAY_STEP_S = 0.25;

/** The subtitles that the player knows; those of the language that was chosen last are on. */
export function SubtitleMenu({ video, open }: SubtitleMenuProps) {
  const [tracks, setTracks] = useState<readonly TextTrack[]>([]);
  const [shown, setShown] = useState(OFF);
  const [delayS, setDelayS] = useState(0);
  const delay = useRef<SubtitleDelay>(null);
  useEffect(() => {
    delay.current = new SubtitleDelay(video()!);
    return () => delay.current?.close();
  }, []);
  const later = (step: number) => () => {
    setDelayS(delayS + step);
    delay.current!.set(delayS + step);
  };
  useEffect(() => {
    const { textTracks } = video()!;
    const look = () => {
      const found = subtitlesOf(video()!);
      setTracks(found);
      setShown(found.findIndex(({ mode }) => mode === "showing"));
    };
    const added = ({ track }: TrackEvent) => {
      const isWanted = track !== null && isSubtitle(track) && track.language !== "" &&
        track.language === kept("subtitles");
      if (isWanted && !showsOwn(video()!)) {
        show(video()!, track);
      }
      look();
    };
    look();
    textTracks.addEventListener("addtrack", added);
    for (const event of ["removetrack", "change"]) textTracks.addEventListener(event, look);
    return () => {
      textTracks.removeEventListener("addtrack", added);
      for (const event of ["removetrack", "change"]) textTracks.removeEventListener(event, look);
    };
  }, []);
  const choose = (place: number) => {
    const chosen = tracks[place];
    show(video()!, chosen);
    setShown(place);
    keep("subtitles", chosen?.language ?? "");
  };
  return (
    <Menu
      label={text("subtitles")}
      icon="subtitles"
      choices={[
        { value: String(OFF), label: text("off") },
        ...tracks.map(({ label, language }, n) => ({ value: String(n), label: label || languageText(language) })),
      ]}
      value={String(shown)}
      choose={(value) => choose(Number(value))}
    >
      {shown === OFF ? null : (
        <Stepper
          label={text("delay")}
          value={secondsText(delayS)}
          lower={later(-DELAY_STEP_S)}
          raise={later(DELAY_STEP_S)}
        />
      )}
      <li>
        <label class="button">
          {text("chooseFileHere")}
          <input
            type="file"
            accept=".srt,.vtt"
            onChange={(event: Event) => {
              const chosen = (event.target as HTMLInputElement).files?.[0];
              if (chosen !== undefined) open(chosen);
            }}
          />
        </label>
      </li>
    </Menu>
  );
}

function isSubtitle(track: TextTrack): boolean {
  return (track.kind === "subtitles" || track.kind === "captions") && !isRemoved(track);
}

function subtitlesOf(video: HTMLVideoElement): TextTrack[] {
  return [...video.textTracks].filter(isSubtitle);
}

function show(video: HTMLVideoElement, chosen: TextTrack | undefined): void {
  for (const track of subtitlesOf(video)) track.mode = track === chosen ? "showing" : "disabled";
}

/** Properties of `FileMenu`. */
export interface FileMenuProps {
  readonly files: readonly ApiMediaFile[];
  readonly at: number;
  readonly choose: (at: number) => void;
}

/** The files of the torrent; nothing where there is only one. */
export function FileMenu({ files, at, choose }: FileMenuProps) {
  if (files.length < 2) return null;
  return (
    <Menu
      label={text("file")}
      icon="files"
      choices={files.map(({ filename }, n) => ({ value: String(n), label: filename }))}
      value={String(at)}
      choose={(value) => choose(Number(value))}
    />
  );
}
