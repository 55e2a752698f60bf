/** How names are compared: what the database keeps for it, made by the migrations and by the playlist alike. */

// deno-lint-ignore no-control-regex
const ASCII = /^[\x00-\x7f]*$/;
/** Marks over letters of these scripts only decorate; elsewhere (Devanagari, kana) they make another letter. */
const DECORATED = /([\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}])(\p{M}+)/gu;
/** Words that tell how a channel is coded, not which it is. */
const QUALITY =
  /(?<![\p{L}\p{N}])(?:[fuq]?hd|full ?hd|ultra ?hd|sd|hq|lq|[248]k|hdr(?:10)?\+?|sdr|hevc|avc|av1|[hx][. ]?26[45]|mpeg[24]|(?:2160|1440|1080|720|576|540|480|360)[pi]?|(?:25|50|60) ?fps)(?![\p{L}\p{N}+])/gu;

/** `text` in lower case, of one width and without diacritics: `Ｃafé` and `CAFE` are the same. Й stays a letter of its own. */
export function foldText(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase();
  return text.normalize("NFKD").toLowerCase()
    .replace(DECORATED, (all, letter: string, marks: string) => letter === "и" && marks === "\u0306" ? all : letter)
    .normalize("NFC");
}

/**
 * Folded letters and digits of `name` alone, without words for the picture's quality (HD, UHD, 4K, HEVC, 1080p, 50 fps):
 * writing, spaces and punctuation differ from list to list, and the same channel comes in several qualities. A name that is nothing else
 * keeps such words.
 */
export function normalizedName(name: string): string {
  const folded = foldText(name);
  return letters(folded.replace(QUALITY, " ")) || letters(folded);
}

/** A group of items that are one channel: by `tvg-id`, else by normalised name. */
export function mediaGroup({ title, tvgId }: { readonly title: string; readonly tvgId: string }): string {
  const id = tvgId.trim().toLowerCase();
  return id !== "" ? `id:${id}` : `name:${normalizedName(title)}`;
}

function letters(text: string): string {
  return text.replace(/[^\p{L}\p{M}\p{N}+]+/gu, "");
}
