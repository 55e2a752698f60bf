/** What sound a WAV file holds, by its first chunks (Multimedia Programming Interface 1.0, chapter 3). */

/** WAVE_FORMAT_PCM, WAVE_FORMAT_IEEE_FLOAT. */
const PCM = [1, 3];
/** The format is in a GUID, which begins with one of the others. */
const EXTENSIBLE = 0xfffe;
const SUBFORMAT_AT = 24;

/** Names of formats (WAVE_FORMAT_…). */
export const WAV_CODINGS: Readonly<Record<number, string>> = {
  2: "ADPCM",
  6: "A-law",
  7: "µ-law",
  0x11: "IMA ADPCM",
  0x31: "GSM",
  0x50: "MPEG audio",
  0x55: "MP3",
  0x2000: "AC-3",
  0x2001: "DTS",
};

/** How the samples in the WAV file that begins with `head` are coded; null for PCM, or where the head does not say. */
export function wavCoding(head: Uint8Array): string | null {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  for (
    let at = 12;
    at + 8 <= head.length;
    at += 8 + view.getUint32(at + 4, true) + (view.getUint32(at + 4, true) & 1)
  ) {
    const isFormat = head[at] === 0x66 && head[at + 1] === 0x6d && head[at + 2] === 0x74 && head[at + 3] === 0x20;
    if (!isFormat) continue;
    if (at + 10 > head.length) return null;
    let tag = view.getUint16(at + 8, true);
    const sub = at + 8 + SUBFORMAT_AT;
    if (tag === EXTENSIBLE && sub + 2 <= head.length) tag = view.getUint16(sub, true);
    return PCM.includes(tag) ? null : WAV_CODINGS[tag] ?? `WAV format ${tag}`;
  }
  return null;
}
