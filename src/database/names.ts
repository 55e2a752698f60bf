/** The keys by which names are compared. They are stored, so migrations and playlist must compute them in the same way. */

// deno-lint-ignore no-control-regex
const ASCII = /^[\x00-\x7f]*$/;
/**
 * In these scripts marks over letters are only decoration, or vowels that most texts leave out; elsewhere (Devanagari, kana)
 * they make a different letter.
 */
const DECORATED = /([\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Arabic}\p{Script=Hebrew}])(\p{M}+)/gu;
/** Letters that do not decompose, as people without them on their keyboard write them; and what only lengthens a word. */
const WRITTEN: Readonly<Record<string, string>> = {
  ł: "l",
  ß: "ss",
  ø: "o",
  æ: "ae",
  œ: "oe",
  đ: "d",
  ð: "d",
  ı: "i",
  þ: "th",
  ħ: "h",
  ŧ: "t",
  ŋ: "n",
  ς: "σ",
  ى: "ي",
  "\u0640": "",
};
/** The letters of `WRITTEN`, and Hiragana: as escapes, because one letter beyond ASCII doubles the size of the built file in memory. */
const REWRITTEN =
  /[\u0142\u00DF\u00F8\u00E6\u0153\u0111\u00F0\u0131\u00FE\u0127\u0167\u014B\u03C2\u0649\u0640\u3041-\u3096]/gu;
/** From Hiragana to Katakana. */
const KATAKANA = 0x60;
/** Words that say how a channel is encoded, not which channel it is. */
const QUALITY =
  /(?<![\p{L}\p{N}])(?:[fuq]?hd|full ?hd|ultra ?hd|sd|hq|lq|[248]k|hdr(?:10)?\+?|sdr|hevc|avc|av1|[hx][. ]?26[45]|mpeg[24]|(?:2160|1440|1080|720|576|540|480|360)[pi]?|(?:25|50|60) ?fps)(?![\p{L}\p{N}+])/gu;

/**
 * `text` in lower case, in one width, one kana and without diacritics: `Ｃafé` and `CAFE`, `Łódź` and `lodz` become equal.
 * Й stays a separate letter.
 */
export function foldText(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase();
  return text.normalize("NFKD").toLowerCase()
    .replace(DECORATED, (all, letter: string, marks: string) => letter === "и" && marks === "\u0306" ? all : letter)
    .replace(REWRITTEN, (letter) => WRITTEN[letter] ?? String.fromCharCode(letter.charCodeAt(0) + KATAKANA))
    .normalize("NFC");
}

/** Letters that people also write in another way than `foldText` does: the shortest, and in full. */
const WRITTEN_SHORT: Readonly<Record<string, string>> = { æ: "a", œ: "o", þ: "t" };
const WRITTEN_FULL: Readonly<Record<string, string>> = { ä: "ae", ö: "oe", ü: "ue", å: "aa", ø: "oe" };
/** The letters of both. */
const OTHERWISE_WRITTEN = /[\u00E6\u0153\u00FE\u00E4\u00F6\u00FC\u00E5\u00F8]/g;

/**
 * What searches look at for a title: its folded text, and in further lines other ways to write it. `Ærø` is found as `aero`,
 * `aro` and `aeroe`, `Köln` as `koln` and `koeln`.
 */
export function searchText(title: string): string {
  const folded = foldText(title);
  if (ASCII.test(title)) return folded;
  const lower = title.normalize("NFC").toLowerCase();
  if (lower.search(OTHERWISE_WRITTEN) === -1) return folded;
  const written = [WRITTEN_SHORT, WRITTEN_FULL]
    .map((letters) => foldText(lower.replace(OTHERWISE_WRITTEN, (letter) => letters[letter] ?? letter)));
  return [...new Set([folded, ...written])].join("\n");
}

/**
 * Only the folded letters and digits of `name`, without words for picture quality (HD, UHD, 4K, HEVC, 1080p, 50 fps):
 * spelling, spaces and punctuation differ between lists, and the same channel comes in several qualities. A name made
 * only of such words keeps them.
 */
export function normalizedName(name: string): string {
  const folded = foldText(name);
  return letters(folded.replace(QUALITY, " ")) || letters(folded);
}

/** Values of `tvg-id` that say that there is none, without spaces and punctuation. */
const NO_ID = /^(?:0*|na|nil|null|none|false|undefined|unknown|noid|notvgid|noepg|empty|blank|dummy|tvgid|nan)$/;

/** Longer ids are ids, characters: this saves most of them the comparison. */
const MAX_NO_ID_CHARS = 16;

/** The form in which `tvg-id`s are compared; empty for what lists write where they have none (`N/A`, `0`, `-`, `none`). */
export function channelId(tvgId: string): string {
  const id = tvgId.trim().toLowerCase();
  return id.length <= MAX_NO_ID_CHARS && NO_ID.test(letters(id)) ? "" : id;
}

/** Key of the items that are one channel: by `tvg-id`, else by normalised name; a name of symbols alone stays as it is. */
export function mediaGroup({ title, tvgId }: { readonly title: string; readonly tvgId: string }): string {
  const id = channelId(tvgId);
  if (id !== "") return `id:${id}`;
  const name = normalizedName(title);
  return name !== "" ? `name:${name}` : `text:${foldText(title).trim()}`;
}

function letters(text: string): string {
  return text.replace(/[^\p{L}\p{M}\p{N}+]+/gu, "");
}
