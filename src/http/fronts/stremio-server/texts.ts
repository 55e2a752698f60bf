/** Subtitles: files of them as WebVTT, and the hash by which OpenSubtitles knows a film. */
import { deadline } from "../../../bytes/deadline.ts";
import { concatBytes } from "../../../bytes/hex.ts";
import { hasCode, MillraceError } from "../../../errors.ts";
import { readCues } from "../../../media/subtitles/cues.ts";
import { renderWebVtt } from "../../../media/subtitles/webvtt.ts";
import { fileBody } from "../../../playback/output.ts";
import { subtitlesAsUtf8 } from "../../../playback/subtitle-encoding.ts";
import type { HttpContext, HttpParts } from "../../context.ts";
import { fileRequest } from "../requests.ts";
import { ownFile } from "./media.ts";
import { fileAt, indexOf, type NamedFile } from "./named.ts";

/** Largest file of subtitles, bytes: those of long films have 200 KB, and a megabyte takes a tenth of a second. */
const MAX_SUBTITLES_BYTES = 1024 * 1024;
/** Deadline for parts of files, ms. */
const READ_MS = 60_000;
/** The parts of a film that its hash is made from, bytes each. */
const HASHED_BYTES = 64 * 1024;

/** `/subtitles.vtt?from=ADDRESS`, in SubRip or WebVTT, moved by `offset` ms. */
export async function subtitles(c: HttpContext, parts: HttpParts, prefix: string): Promise<Response> {
  const query = new URL(c.req.url).searchParams;
  const from = query.get("from") ?? "";
  const offsetMs = Number(/^-?\d{1,8}$/.exec(query.get("offset") ?? "")?.[0] ?? 0);
  const named = fileAt(c, prefix, from);
  const limits = { maxBytes: MAX_SUBTITLES_BYTES, allowPrivate: c.get("caller").isLocal };
  const bytes = named === null
    ? await parts.api.fetchBytes(from, limits, c.req.raw.signal)
    : await ranges(c, parts, named, (sizeBytes) => {
      if (sizeBytes > MAX_SUBTITLES_BYTES) throw new MillraceError("too_large", "the file is too large for subtitles");
      return [[0, sizeBytes]];
    }).then(({ read }) => read[0]!);
  const cues = readCues(await subtitlesAsUtf8(bytes, null)).filter(({ endMs }) => endMs + offsetMs > 0).map((cue) => {
    return { ...cue, startMs: Math.max(0, cue.startMs + offsetMs), endMs: cue.endMs + offsetMs };
  });
  if (cues.length === 0) throw new MillraceError("unsupported_media", "the file holds no SubRip and no WebVTT");
  const headers = { "content-type": "text/vtt; charset=utf-8", "cache-control": "no-cache" };
  return new Response(c.req.raw.method === "HEAD" ? null : renderWebVtt(cues, null), { headers });
}

/** `/opensubHash?videoUrl=ADDRESS`. A film that has none is an error in the answer, which the app expects with status 200. */
export async function filmHash(c: HttpContext, parts: HttpParts, prefix: string): Promise<Response> {
  try {
    const named = ownFile(c, prefix, c.req.query("videoUrl") ?? "");
    const { sizeBytes, read } = await ranges(c, parts, named, (size) => {
      if (size < HASHED_BYTES) throw new MillraceError("unsupported_media", "the film is too short for a hash");
      return [[0, HASHED_BYTES], [size - HASHED_BYTES, size]];
    });
    return c.json({ error: null, result: { hash: openSubtitlesHash(sizeBytes, read), size: sizeBytes } });
  } catch (error) {
    if (!hasCode(error, "unsupported_media")) throw error;
    return c.json({ error: (error as Error).message, result: null });
  }
}

/** The sum of the size and of all 64-bit numbers in the parts, as 16 hexadecimal digits. */
export function openSubtitlesHash(sizeBytes: number, parts: readonly Uint8Array[]): string {
  let sum = BigInt(sizeBytes);
  for (const part of parts) {
    const numbers = new DataView(part.buffer, part.byteOffset, part.byteLength);
    for (let at = 0; at + 8 <= part.length; at += 8) sum += numbers.getBigUint64(at, true);
  }
  return BigInt.asUintN(64, sum).toString(16).padStart(16, "0");
}

/** Ranges `[start, end)` of a file, chosen by its size. Rejects as playback, and with `timeout`. */
async function ranges(
  c: HttpContext,
  parts: HttpParts,
  named: NamedFile,
  choose: (sizeBytes: number) => readonly (readonly [start: number, end: number])[],
): Promise<{ readonly sizeBytes: number; readonly read: readonly Uint8Array[] }> {
  const late = deadline(parts.clock, READ_MS, c.req.raw.signal);
  try {
    const index = await indexOf(c, parts, named);
    const request = fileRequest(c, parts, named.selector, index, false, late.signal);
    const session = await parts.sessions.start({ ...request, isTrial: false });
    const body = fileBody(session);
    if (body === null || body.sizeBytes === null) {
      throw new MillraceError("unsupported_media", "a broadcast is no file");
    }
    const read = await Promise.all(
      choose(body.sizeBytes).map(async ([start, end]) => {
        const chunks: Uint8Array[] = [];
        const into = new WritableStream<Uint8Array>({ write: (chunk) => void chunks.push(chunk.slice()) });
        await body.open(start, end).pipeTo(into, { signal: late.signal });
        return concatBytes(chunks);
      }),
    );
    return { sizeBytes: body.sizeBytes, read };
  } finally {
    late.cancel();
  }
}
