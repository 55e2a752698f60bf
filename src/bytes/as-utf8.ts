/**
 * Decides in which encoding a text is written (a list, subtitles), once for the whole text: by its byte order mark or zeros,
 * by what it says (`#EXTENC:`, `charset=`), else by its first letters that are not ASCII. A detector knows which bytes are
 * usual in which language; it is loaded only when there are letters that are no UTF-8.
 */
import { concatBytes } from "./hex.ts";
import { utf16Name } from "./text.ts";

/** Most bytes kept, from the first letter on that is not ASCII, to decide by. */
const MAX_SAMPLE_BYTES = 64 * 1024;
/** Most bytes of words given to the detector: it takes 10 ms for them. */
const MAX_WORD_BYTES = 4096;
/** Bytes at the beginning in which a list says its encoding. */
const MAX_HEAD_BYTES = 4096;
const STATED = /#EXTENC:\s*([\w-]{1,40})|\b(?:charset|encoding)\s*=\s*["']?([\w-]{1,40})/i;

/** What the detector may return, and what `TextDecoder` calls it. Others (those of DOS, of Macs, of Vietnam …) no list uses. */
const NAMES: Readonly<Record<string, string>> = {
  big5: "big5",
  cp874: "windows-874",
  cp932: "shift_jis",
  cp949: "euc-kr",
  "euc-jp": "euc-jp",
  "euc-kr": "euc-kr",
  gb18030: "gb18030",
  gb2312: "gb18030",
  ibm866: "ibm866",
  "iso-8859-1": "windows-1252",
  "iso-8859-2": "iso-8859-2",
  "iso-8859-5": "iso-8859-5",
  "iso-8859-7": "iso-8859-7",
  "iso-8859-9": "windows-1254",
  "koi8-r": "koi8-r",
  "koi8-u": "koi8-u",
  shift_jis: "shift_jis",
  "tis-620": "windows-874",
  "windows-1250": "windows-1250",
  "windows-1251": "windows-1251",
  "windows-1252": "windows-1252",
  "windows-1253": "windows-1253",
  "windows-1254": "windows-1254",
  "windows-1255": "windows-1255",
  "windows-1256": "windows-1256",
  "windows-1257": "windows-1257",
};
/** Encodings of Latin letters that short texts cannot tell from Windows-1252, which most lists are in. */
const LIKE_1252 = new Set(["windows-1250", "iso-8859-2", "windows-1254", "windows-1257"]);
/** Encodings of one byte per letter whose alphabets have no ASCII letters: their words are runs of high bytes. */
const OTHER_ALPHABETS = /^(?:windows-(?:125[1356]|874)|iso-8859-[57]|koi8-[ru]|ibm866)$/;
/** Confidence in Windows-1252, as a share of that in one of those, with which it is chosen. */
const CLOSE = 0.7;

/** Converts to UTF-8; UTF-8 passes unchanged, and so does everything before the first letter that is not ASCII. */
export async function* asUtf8(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let head: Uint8Array | null = new Uint8Array(0);
  let stated = "";
  let sample: Uint8Array[] | null = null;
  let sampleBytes = 0;
  let decode: ((bytes: Uint8Array, isLast: boolean) => Uint8Array) | null = null;
  let isDecided = false;
  for await (const chunk of chunks) {
    let bytes = chunk;
    if (head !== null) {
      bytes = head.length === 0 ? chunk : concatBytes([head, chunk]);
      head = bytes.length < 4 ? bytes : null;
      if (head !== null) continue;
      decode = wideDecoder(bytes);
      isDecided = decode !== null;
    }
    if (isDecided) {
      yield decode === null ? bytes : decode(bytes, false);
      continue;
    }
    if (stated.length < MAX_HEAD_BYTES) stated += asciiOf(bytes.subarray(0, MAX_HEAD_BYTES - stated.length));
    if (sample === null) {
      if (isAscii(bytes)) {
        yield bytes;
        continue;
      }
      sample = [];
    }
    // A copy, because the owner of the chunk may reuse it.
    sample.push(bytes.slice());
    sampleBytes += bytes.length;
    if (sampleBytes < MAX_SAMPLE_BYTES) continue;
    const all = concatBytes(sample);
    decode = decoderOf(await encodingOf(all, stated));
    isDecided = true;
    yield decode === null ? all : decode(all, false);
  }
  if (head !== null && head.length > 0) yield head;
  if (!isDecided && sample !== null) {
    const all = concatBytes(sample);
    decode = decoderOf(await encodingOf(all, stated));
    yield decode === null ? all : decode(all, false);
  }
  if (decode !== null) yield decode(new Uint8Array(0), true);
}

/** Name of the encoding of `sample`, the first bytes that are not all ASCII; `head` is the beginning of the list. */
async function encodingOf(sample: Uint8Array, head: string): Promise<string> {
  const text = new TextDecoder().decode(sample, { stream: true });
  const bad = text.split("\uFFFD").length - 1;
  // One byte that was cut off or put in does not make all others another language.
  const good = (text.match(/[\u0080-\uFFFC]|[\u{10000}-\u{10FFFF}]/gu) ?? []).length;
  if (bad === 0 || good > bad) return "utf-8";
  const [, tag, attribute] = STATED.exec(head) ?? [];
  const stated = decoderName(tag ?? attribute ?? "");
  if (stated !== null && stated !== "utf-8") return stated;
  return await detected(wordsOf(sample));
}

/** The canonical name of an encoding that `TextDecoder` knows; null for others. */
function decoderName(label: string): string | null {
  try {
    const name = /^cp(125\d|866)$/i.exec(label)?.[1];
    return new TextDecoder(name === undefined ? label : name === "866" ? "ibm866" : `windows-${name}`).encoding;
  } catch {
    return null;
  }
}

async function detected(words: Uint8Array): Promise<string> {
  const { detectAll } = await import("jschardet");
  const isLatin = hasLoneLetters(words);
  const found = new Map<string, number>();
  for (const { encoding, confidence } of detectAll(words, { minimumThreshold: 0 })) {
    const name = NAMES[String(encoding).toLowerCase()];
    if (name === undefined || isLatin && OTHER_ALPHABETS.test(name)) continue;
    if (!found.has(name)) found.set(name, confidence ?? 0);
  }
  const [[best, confidence] = ["windows-1252", 0]] = found;
  const isClose = LIKE_1252.has(best) && (found.get("windows-1252") ?? 0) >= CLOSE * confidence;
  return isClose ? "windows-1252" : best;
}

/** True when at least half of the high bytes have none beside them, as in words with few letters that are not ASCII. */
function hasLoneLetters(words: Uint8Array): boolean {
  let high = 0;
  let alone = 0;
  for (let at = 0; at < words.length; at++) {
    if (words[at]! < 0x80) continue;
    high++;
    if ((words[at - 1] ?? 0) < 0x80 && (words[at + 1] ?? 0) < 0x80) alone++;
  }
  return alone >= high / 2;
}

/** Each value and title with letters that are not ASCII, once: addresses and names of attributes say nothing about the language. */
function wordsOf(sample: Uint8Array): Uint8Array {
  // Each byte is one character here, as the decoder of Windows-1252 would not have it.
  let text = "";
  for (let at = 0; at < sample.length; at += 4096) text += String.fromCharCode(...sample.subarray(at, at + 4096));
  const words = new Set<string>();
  let bytes = 0;
  for (const word of text.split(/[\n\r",=]/)) {
    const trimmed = word.trim();
    if (!/[\x80-\xff]/.test(word) || words.has(trimmed)) continue;
    bytes += trimmed.length + 1;
    if (bytes > MAX_WORD_BYTES && words.size > 0) break;
    words.add(trimmed);
  }
  return Uint8Array.from([...words].join("\n").slice(0, MAX_WORD_BYTES), (char) => char.charCodeAt(0));
}

function decoderOf(name: string): ((bytes: Uint8Array, isLast: boolean) => Uint8Array) | null {
  if (name === "utf-8") return null;
  const decoder = new TextDecoder(name);
  const encoder = new TextEncoder();
  return (bytes, isLast) => encoder.encode(decoder.decode(bytes, { stream: !isLast }));
}

/** For UTF-16, and for UTF-32, which `TextDecoder` does not know. */
function wideDecoder(head: Uint8Array): ((bytes: Uint8Array, isLast: boolean) => Uint8Array) | null {
  const [a, b, c, d] = head;
  const isLittle = c === 0 && d === 0 && (b === 0 || (a === 0xff && b === 0xfe));
  const isBig = a === 0 && b === 0 && (c === 0 || (c === 0xfe && d === 0xff));
  if (isLittle || isBig) return utf32Decoder(isLittle);
  const name = utf16Name(head);
  return name === null ? null : decoderOf(name);
}

function utf32Decoder(isLittle: boolean): (bytes: Uint8Array) => Uint8Array {
  let rest: Uint8Array = new Uint8Array(0);
  const encoder = new TextEncoder();
  return (chunk) => {
    const bytes = rest.length === 0 ? chunk : concatBytes([rest, chunk]);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    let text = "";
    let at = 0;
    for (; at + 4 <= bytes.length; at += 4) {
      const code = view.getUint32(at, isLittle);
      text += code <= 0x10ffff ? String.fromCodePoint(code) : "\uFFFD";
    }
    rest = bytes.slice(at);
    return encoder.encode(text);
  };
}

function isAscii(bytes: Uint8Array): boolean {
  for (let at = 0; at < bytes.length; at++) if (bytes[at]! >= 0x80) return false;
  return true;
}

function asciiOf(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}
