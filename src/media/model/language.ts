/** Language tags: Matroska and MP4 give ISO 639-2 or BCP 47, MPEG TS wants ISO 639-2, users type either. */

/** ISO 639-1 to ISO 639-2/T for the languages that films come in. */
const THREE_LETTERS: Readonly<Record<string, string>> = {
  ar: "ara",
  be: "bel",
  bg: "bul",
  bn: "ben",
  bs: "bos",
  ca: "cat",
  cs: "ces",
  cy: "cym",
  da: "dan",
  de: "deu",
  el: "ell",
  en: "eng",
  es: "spa",
  et: "est",
  eu: "eus",
  fa: "fas",
  fi: "fin",
  fr: "fra",
  ga: "gle",
  gl: "glg",
  he: "heb",
  hi: "hin",
  hr: "hrv",
  hu: "hun",
  hy: "hye",
  id: "ind",
  is: "isl",
  it: "ita",
  ja: "jpn",
  ka: "kat",
  kk: "kaz",
  ko: "kor",
  lt: "lit",
  lv: "lav",
  mk: "mkd",
  ms: "msa",
  nb: "nob",
  nl: "nld",
  nn: "nno",
  no: "nor",
  pl: "pol",
  pt: "por",
  ro: "ron",
  ru: "rus",
  sk: "slk",
  sl: "slv",
  sq: "sqi",
  sr: "srp",
  sv: "swe",
  ta: "tam",
  te: "tel",
  th: "tha",
  tr: "tur",
  uk: "ukr",
  ur: "urd",
  uz: "uzb",
  vi: "vie",
  zh: "zho",
};

/** ISO 639-2/B (bibliographic) codes that differ from the terminological ones. */
const BIBLIOGRAPHIC: Readonly<Record<string, string>> = {
  alb: "sqi",
  arm: "hye",
  baq: "eus",
  chi: "zho",
  cze: "ces",
  dut: "nld",
  fre: "fra",
  geo: "kat",
  ger: "deu",
  gre: "ell",
  ice: "isl",
  mac: "mkd",
  may: "msa",
  per: "fas",
  rum: "ron",
  slo: "slk",
  wel: "cym",
};

/** Three letters for an ISO 639 descriptor, as written where already so; null when unknown or undetermined. */
export function iso639Code(tag: string | null): string | null {
  if (tag === null) return null;
  const primary = tag.toLowerCase().split(/[-_]/)[0]!;
  if (/^[a-z]{3}$/.test(primary)) return primary === "und" ? null : primary;
  return THREE_LETTERS[primary] ?? null;
}

/** The three letters of a descriptor that needs some. */
export function descriptorLanguage(tag: string | null): number[] {
  return [...iso639Code(tag) ?? "und"].map((letter) => letter.charCodeAt(0));
}

/** True when both tags name the same language, whatever the notation (`de`, `deu`, `ger`, `de-AT`). */
export function sameLanguage(a: string | null, b: string | null): boolean {
  const left = iso639Code(a);
  const right = iso639Code(b);
  if (left === null || right === null) return false;
  return (BIBLIOGRAPHIC[left] ?? left) === (BIBLIOGRAPHIC[right] ?? right);
}

/** The languages of a comma-separated wish (`preferred_audio_language`), best first. */
export function languagesOf(wish: string | null | undefined): string[] {
  return (wish ?? "").split(",").map((part) => part.trim()).filter((part) => part !== "");
}

/** How well `language` suits `wishes`: its place among them; their number when it is none of them. */
export function languageRank(language: string | null, wishes: readonly string[]): number {
  const place = wishes.findIndex((wish) => sameLanguage(wish, language));
  return place < 0 ? wishes.length : place;
}

/** Names of languages, in English and their own, lower-case, to tags of two letters. Made at the first use. */
let byName: ReadonlyMap<string, string> | null = null;
/** Words at the end of a file name that are examined. */
const MAX_WORDS = 4;

function namesOfLanguages(): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const tag of Object.keys(THREE_LETTERS)) {
    for (const locale of [tag, "en"]) {
      const name = new Intl.DisplayNames([locale], { type: "language" }).of(tag);
      if (name !== undefined && name !== tag) names.set(name.toLowerCase(), tag);
    }
  }
  return names;
}

/**
 * The language that the words of a file name end with, as a tag (`en`, `pt-BR`), ISO 639-2 code or name: `en`, `eng`, `English`,
 * `2_English.SDH`; with its English name. Null when none of the last words is one.
 */
export function languageOf(words: string): { readonly tag: string; readonly name: string } | null {
  byName ??= namesOfLanguages();
  const parts = words.toLowerCase().split(/[^\p{L}\p{M}-]+/u).filter((part) => part !== "").slice(-MAX_WORDS);
  for (const part of parts.reverse()) {
    const [primary = "", region = ""] = part.split("-");
    const tag = Object.hasOwn(THREE_LETTERS, primary) ? primary : byName.get(part) ?? tagOfCode(primary);
    if (tag === null) continue;
    const full = /^[a-z]{2}$/.test(region) && primary === tag ? `${tag}-${region.toUpperCase()}` : tag;
    return { tag: full, name: new Intl.DisplayNames(["en"], { type: "language" }).of(full) ?? full };
  }
  return null;
}

/**
 * `tag` as BCP 47 wants it, with the shortest code of its language, and its English name (the tag, where it has none). Null
 * where it is not well formed.
 */
export function tagOf(tag: string): { readonly tag: string; readonly name: string } | null {
  if (!/^[a-z]{2,3}(?:[-_][a-z0-9]{2,8}){0,3}$/i.test(tag)) return null;
  const [primary = "", ...rest] = tag.split(/[-_]/);
  const short = [tagOfCode(primary.toLowerCase()) ?? primary.toLowerCase(), ...rest].join("-");
  try {
    return { tag: short, name: new Intl.DisplayNames(["en"], { type: "language" }).of(short) ?? short };
  } catch {
    return null;
  }
}

/** The tag of two letters for an ISO 639-2 code of three; null when it is none that films come in. */
function tagOfCode(code: string): string | null {
  const three = BIBLIOGRAPHIC[code] ?? code;
  return Object.keys(THREE_LETTERS).find((tag) => THREE_LETTERS[tag] === three) ?? null;
}
