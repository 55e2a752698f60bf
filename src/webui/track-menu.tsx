/** @jsxImportSource hono/jsx/dom */
/** Which sound is heard, which subtitles are shown, which file plays. */
import { useEffect, useState } from "hono/jsx/dom";
import type { MediaFile, Track } from "./engine.ts";
import { languageText, text } from "./texts.ts";

/** Properties of `SoundMenu`. */
export interface SoundMenuProps {
  /** Of the output, in its order: the first sound is heard. */
  readonly tracks: readonly Track[];
  /** Plays again with the sound of a language. */
  readonly choose: (language: string) => void;
}

/** The languages of the sound; nothing where there is only one. */
export function SoundMenu({ tracks, choose }: SoundMenuProps) {
  const languages = [
    ...new Set(tracks.filter(({ kind }) => kind === "audio").flatMap(({ language }) => language ?? [])),
  ];
  if (languages.length < 2) return null;
  return (
    <label class="menu">
      <span>{text("sound")}</span>
      <select onChange={(event: Event) => choose((event.target as HTMLSelectElement).value)}>
        {languages.map((language, n) => (
          <option key={language} value={language} selected={n === 0}>{languageText(language)}</option>
        ))}
      </select>
    </label>
  );
}

/** Properties of `SubtitleMenu`. */
export interface SubtitleMenuProps {
  readonly video: () => HTMLVideoElement | null;
}

/** The subtitles that the player knows, off at first; nothing where there are none. */
export function SubtitleMenu({ video }: SubtitleMenuProps) {
  const [names, setNames] = useState<readonly string[]>([]);
  const [shown, setShown] = useState(-1);
  useEffect(() => {
    const { textTracks } = video()!;
    const look = () => {
      const tracks = [...textTracks];
      setNames(tracks.map(({ label, language }) => label || languageText(language)));
      setShown(tracks.findIndex(({ mode }) => mode === "showing"));
    };
    look();
    for (const event of ["addtrack", "removetrack", "change"]) textTracks.addEventListener(event, look);
    return () => {
      for (const event of ["addtrack", "removetrack", "change"]) textTracks.removeEventListener(event, look);
    };
  }, []);
  if (names.length === 0) return null;
  const show = (chosen: number) => {
    [...video()!.textTracks].forEach((track, n) => track.mode = n === chosen ? "showing" : "disabled");
    setShown(chosen);
  };
  return (
    <label class="menu">
      <span>{text("subtitles")}</span>
      <select onChange={(event: Event) => show(Number((event.target as HTMLSelectElement).value))}>
        <option value={-1} selected={shown === -1}>{text("off")}</option>
        {names.map((name, n) => <option key={n} value={n} selected={n === shown}>{name}</option>)}
      </select>
    </label>
  );
}

/** Properties of `FileMenu`. */
export interface FileMenuProps {
  readonly files: readonly MediaFile[];
  readonly at: number;
  readonly choose: (at: number) => void;
}

/** The files of the torrent; nothing where there is only one. */
export function FileMenu({ files, at, choose }: FileMenuProps) {
  if (files.length < 2) return null;
  return (
    <label class="menu">
      <span>{text("file")}</span>
      <select onChange={(event: Event) => choose(Number((event.target as HTMLSelectElement).value))}>
        {files.map(({ index, filename }, n) => <option key={index} value={n} selected={n === at}>{filename}</option>)}
      </select>
    </label>
  );
}
