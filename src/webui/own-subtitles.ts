/** A file of subtitles that the user drops on the player or chooses: SubRip and WebVTT, read in the page. */

/** Largest file that is read, bytes: those of long films have 200 KB. */
export const MAX_SUBTITLE_BYTES = 2 * 1024 * 1024;
/** Most lines: each is an object of the browser's, and it looks through all of them as the film plays. */
const MAX_CUES = 20_000;

/** A line that is shown for a time. */
export interface SubtitleLine {
  readonly startS: number;
  readonly endS: number;
  readonly text: string;
}

/** True for the name of a file that is read. */
export function isSubtitleName(name: string): boolean {
  return /\.(?:srt|vtt)$/i.test(name);
}

const TIMES =
  /^\s{0,9}(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})\s{0,9}-->\s{0,9}(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})/;

/** The lines of SubRip or WebVTT, in the order of the file; blocks without times are left out. */
export function subtitleLines(file: string): SubtitleLine[] {
  const lines: SubtitleLine[] = [];
  for (const block of file.replace(/\r\n?/g, "\n").split(/\n[ \t]*\n/)) {
    const rows = block.split("\n");
    const at = rows.findIndex((row) => TIMES.test(row));
    if (at < 0) continue;
    const [, ...parts] = TIMES.exec(rows[at]!)!;
    const [startS, endS] = [seconds(parts.slice(0, 4)), seconds(parts.slice(4))];
    // Positions of scripts (`{\an8}`) that some put into SubRip.
    const text = rows.slice(at + 1).join("\n").replace(/\{\\[^}\n]*\}/g, "").trim();
    if (text === "" || endS <= startS) continue;
    lines.push({ startS, endS, text });
    if (lines.length === MAX_CUES) break;
  }
  return lines;
}

function seconds([hours, minutes, whole, fraction]: readonly (string | undefined)[]): number {
  const milliseconds = Number(fraction!.padEnd(3, "0"));
  return Number(hours ?? 0) * 3600 + Number(minutes) * 60 + Number(whole) + milliseconds / 1000;
}

/** Encodings of files that are not UTF-8, by the language of the page. */
const OLD_ENCODINGS: Readonly<Record<string, string>> = { ru: "windows-1251", zh: "gb18030" };

/** The text of a file: UTF-8 and UTF-16, else what people of that language used before. */
export function subtitleText(bytes: Uint8Array<ArrayBuffer>, language: string): string {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  if (first === 0xfe && second === 0xff) return new TextDecoder("utf-16be").decode(bytes);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder(OLD_ENCODINGS[language] ?? "windows-1252").decode(bytes);
  }
}

/** The track that a video has of the user's own. */
const own = new WeakMap<HTMLVideoElement, TextTrack>();
/** Tracks that scripts add can't be taken away again: these are empty, and menus leave them out. */
const removed = new WeakSet<TextTrack>();

/** Shows `file` over `video` and turns other subtitles off. False: nothing in it can be read. */
export async function showOwnSubtitles(video: HTMLVideoElement, file: File): Promise<boolean> {
  if (file.size > MAX_SUBTITLE_BYTES) return false;
  const bytes = new Uint8Array(await file.arrayBuffer());
  const lines = subtitleLines(subtitleText(bytes, document.documentElement.lang));
  if (lines.length === 0) return false;
  removeOwnSubtitles(video);
  // Not an element: Chromium empties one without an address, and turns on another track by itself when it is added.
  const track = video.addTextTrack("subtitles", file.name);
  own.set(video, track);
  for (const other of video.textTracks) other.mode = other === track ? "showing" : "disabled";
  for (const { startS, endS, text } of lines) track.addCue(new VTTCue(startS, endS, text));
  // Browsers turn on tracks of the user's language as a player adds them.
  const stayAlone = () => {
    if (removed.has(track)) return video.textTracks.removeEventListener("change", stayAlone);
    if (track.mode !== "showing") return;
    for (const other of video.textTracks) if (other !== track && other.mode === "showing") other.mode = "disabled";
  };
  video.textTracks.addEventListener("change", stayAlone);
  return true;
}

/** Takes away what was shown: another file plays. */
export function removeOwnSubtitles(video: HTMLVideoElement): void {
  const track = own.get(video);
  if (track === undefined) return;
  own.delete(video);
  removed.add(track);
  // A track that is off shows its lines to nobody.
  track.mode = "hidden";
  for (const cue of [...track.cues ?? []]) track.removeCue(cue);
  track.mode = "disabled";
}

/** Whether `video` shows a file of the user's own: tracks that arrive later do not take its place. */
export function showsOwn(video: HTMLVideoElement): boolean {
  return own.get(video)?.mode === "showing";
}

/** Whether a track is one that was taken away. */
export function isRemoved(track: TextTrack): boolean {
  return removed.has(track);
}
