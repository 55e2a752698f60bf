/** TorrServer's lists: the files of a torrent, and all torrents. */
import { mimeTypeOf } from "../../../content/file-choice.ts";
import type { AnyMetainfo } from "../../../metainfo/live.ts";
import { baseName, type NumberedFile, numberedFiles } from "./file-ids.ts";

/** Films and sound that the engine can't lay out, but players can read. */
const OTHER_MEDIA =
  /\.(?:iso|vob|evo|bdmv|m2ts|mts|rm|rmvb|divx|asf|wmv|3gp|ogm|f4v|ape|dsf|dff|mpc|tak|tta|wv|aiff?)$/i;
/** Texts and sound beside a film. */
const BESIDE = /\.(?:srt|vtt|ass|ssa|sub|smi|mka|mks|ac3|eac3|dts|aac|mp3|flac|m4a|ogg|opus|wav)$/i;
/** Most files beside one film that the list names: players open each of them. */
const MAX_BESIDE = 32;

/** Whether players take the file for film or sound by its name. */
function isMedia(path: string): boolean {
  return /^(?:audio|video)\//.test(mimeTypeOf(path)) || OTHER_MEDIA.test(path);
}

const isFilm = (path: string) => mimeTypeOf(path).startsWith("video/") || OTHER_MEDIA.test(path);

/** Text of one line. */
// deno-lint-ignore no-control-regex
const line = (text: string) => text.replace(/[\u0000-\u001f\u007f]+/g, " ");
/** Value of an attribute in quotes. */
const quoted = (text: string) => line(text).replaceAll('"', "%22");

/** Address of a file. `link` comes before other parameters, and `index` is never last: clients cut them out of the text. */
export function fileUrl(base: string, hash: string, { id, path }: Pick<NumberedFile, "id" | "path">): string {
  return `${base}/stream/${encodeURIComponent(baseName(path))}?link=${hash}&index=${id}&play`;
}

/** Lines of the media files from number `fromId` on. Films come with the texts and sound that are named like them. */
export function torrentLines(base: string, hash: string, metainfo: AnyMetainfo, fromId: number): string[] {
  const files = numberedFiles(metainfo);
  const beside = files.filter(({ path }) => BESIDE.test(path))
    .map((file) => ({ file, name: baseName(file.path) })).sort((a, b) =>
      a.name < b.name ? -1 : a.name > b.name ? 1 : 0
    );
  return files.filter(({ id, path }) => id >= fromId && isMedia(path)).flatMap((file) => {
    const name = baseName(file.path);
    const slaves = isFilm(file.path) ? named(beside, stemOf(name)).filter(({ id }) => id !== file.id) : [];
    return [
      `#EXTINF:0,${line(name)}`,
      ...(slaves.length === 0
        ? []
        : [`#EXTVLCOPT:input-slave=${slaves.map((slave) => `${fileUrl(base, hash, slave)}#`).join("")}`]),
      fileUrl(base, hash, file),
    ];
  });
}

function stemOf(name: string): string {
  const dot = name.lastIndexOf(".");
  return dot > 0 ? name.slice(0, dot) : name;
}

/** Those whose names begin with `stem`; `files` are ordered by name. */
function named(files: readonly { readonly file: NumberedFile; readonly name: string }[], stem: string): NumberedFile[] {
  let [low, high] = [0, files.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (files[middle]!.name < stem) low = middle + 1;
    else high = middle;
  }
  const found: NumberedFile[] = [];
  for (let i = low; i < files.length && found.length < MAX_BESIDE; i++) {
    if (!files[i]!.name.startsWith(stem)) break;
    found.push(files[i]!.file);
  }
  return found;
}

/** The entry of a torrent in the list of all: an address of its own list. */
export function listLines(base: string, hash: string, title: string, poster: string): string[] {
  const logo = /^https?:\/\//.test(poster) ? ` tvg-logo="${quoted(poster)}"` : "";
  const name = encodeURIComponent(line(title).toWellFormed() || hash);
  return [
    `#EXTINF:0${logo} type="playlist",${line(title) || hash}`,
    `${base}/stream/${name}.m3u?link=${hash}&m3u&fn=file.m3u`,
  ];
}

/** The list as a response. */
export function m3uResponse(lines: readonly string[], name: string, isHead: boolean): Response {
  const full = /\.m3u8?$/i.test(name) ? name : `${name}.m3u`;
  const plain = line(full).replace(/[^\x20-\x7e]|["\\%]/g, "_");
  const named = encodeURIComponent(line(full).toWellFormed()).replace(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16)}`,
  );
  const text = ["#EXTM3U", ...lines, ""].join("\n");
  return new Response(isHead ? null : text, {
    headers: {
      "content-type": "audio/x-mpegurl; charset=utf-8",
      "content-disposition": `attachment; filename="${plain}"; filename*=UTF-8''${named}`,
      "cache-control": "no-cache",
    },
  });
}
