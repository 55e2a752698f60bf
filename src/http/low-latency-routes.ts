/** Low-latency HLS of broadcasts: what players ask of a playlist (RFC 8216bis, 6.2.5), and its parts. */
import { MillraceError } from "../errors.ts";
import type { LowLatencyAsk } from "../playback/live/low-latency.ts";
import type { AnySession } from "../playback/sessions.ts";
import type { HttpContext } from "./context.ts";

/** Name of part `p` of segment `n` in addresses. */
export function partName(n: number, p: number): string {
  return `${n}.${p}.m4s`;
}

/** The segment and part of that name; null when it is none of a part. */
export function partNamed(name: string): { readonly n: number; readonly p: number } | null {
  const match = /^(\d{1,9})\.(\d{1,3})\.m4s$/.exec(name);
  return match && { n: Number(match[1]), p: Number(match[2]) };
}

/** What the query of a request for a playlist asks. Throws `invalid_argument`. */
export function lowLatencyAsk(c: HttpContext, partUrl: LowLatencyAsk["partUrl"]): LowLatencyAsk {
  const segment = numberOf(c, "_HLS_msn");
  const part = numberOf(c, "_HLS_part");
  if (segment === null && part !== null) {
    throw new MillraceError("invalid_argument", "invalid _HLS_part: it needs _HLS_msn beside it");
  }
  const skip = c.req.query("_HLS_skip");
  return {
    partUrl,
    isUpdate: skip === "YES" || skip === "v2",
    awaited: segment === null ? null : { segment, part },
  };
}

function numberOf(c: HttpContext, name: string): number | null {
  const text = c.req.query(name);
  if (text === undefined) return null;
  if (!/^\d{1,9}$/.test(text)) throw new MillraceError("invalid_argument", `invalid ${name}: a number is expected`);
  return Number(text);
}

/** Part `p` of segment `n`, which is waited for if it comes next; null when there is none. Rejects as `LiveSession.part`. */
export async function partResponse(
  c: HttpContext,
  session: AnySession,
  { n, p }: { readonly n: number; readonly p: number },
): Promise<Response | null> {
  const part = session.kind === "live" ? await session.part(n, p, c.req.raw.signal) : null;
  if (session.kind !== "live" || part === null) return null;
  session.touch();
  const headers = {
    "content-type": "video/mp4",
    "cache-control": "no-cache",
    "content-length": String(part.bytes.length),
  };
  return new Response(c.req.raw.method === "HEAD" ? null : session.openPart(n, part), { headers });
}
