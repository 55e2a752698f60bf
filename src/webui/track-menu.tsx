/** @jsxImportSource hono/jsx/dom */
/** Which sound is heard, which subtitles are shown, which file plays. */
import type { MediaFile, Track } from "./engine.ts";
import { Menu } from "./menu.tsx";
import { keep, kept } from "./preferences.ts";
import { useEffect, useState } from "./state.ts";
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
    <Menu
      label={text("sound")}
      choices={languages.map((language) => ({ value: language, label: languageText(language) }))}
      value={languages[0]!}
      choose={choose}
    />
  );
}

/** Properties of `SubtitleMenu`. */
export interface SubtitleMenuProps {
  readonly video: () => HTMLVideoElement | null;
}

/** The place of no subtitles. */
const OFF = -1;

/** The subtitles that the player knows; those of the language that was chosen last are on. Nothing where there are none. */
export function SubtitleMenu({ video }: SubtitleMenuProps) {
  const [tracks, setTracks] = useState<readonly TextTrack[]>([]);
  const [shown, setShown] = useState(OFF);
  useEffect(() => {
    const { textTracks } = video()!;
    const look = () => {
      const found = subtitlesOf(video()!);
      setTracks(found);
      setShown(found.findIndex(({ mode }) => mode === "showing"));
    };
    const added = ({ track }: TrackEvent) => {
      if (track !== null && isSubtitle(track) && track.language !== "" && track.language === kept("subtitles")) {
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
  if (tracks.length === 0) return null;
  const choose = (place: number) => {
    const chosen = tracks[place];
    show(video()!, chosen);
    setShown(place);
    keep("subtitles", chosen?.language ?? "");
  };
  return (
    <Menu
      label={text("subtitles")}
      choices={[
        { value: String(OFF), label: text("off") },
        ...tracks.map(({ label, language }, n) => ({ value: String(n), label: label || languageText(language) })),
      ]}
      value={String(shown)}
      choose={(value) => choose(Number(value))}
    />
  );
}

function isSubtitle({ kind }: TextTrack): boolean {
  return kind === "subtitles" || kind === "captions";
}

function subtitlesOf(video: HTMLVideoElement): TextTrack[] {
  return [...video.textTracks].filter(isSubtitle);
}

function show(video: HTMLVideoElement, chosen: TextTrack | undefined): void {
  for (const track of subtitlesOf(video)) track.mode = track === chosen ? "showing" : "disabled";
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
    <Menu
      label={text("file")}
      choices={files.map(({ filename }, n) => ({ value: String(n), label: filename }))}
      value={String(at)}
      choose={(value) => choose(Number(value))}
    />
  );
}
