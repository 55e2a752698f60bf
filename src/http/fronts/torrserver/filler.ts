/** `/download/SIZE`: bytes without meaning, by which clients measure their line. */
import type { HttpContext } from "../../context.ts";
import { text } from "../../guard.ts";
import { parseRange } from "../../range.ts";

/** Most that is sent, MiB. */
const MAX_FILLER_MIB = 1024;
const FILLER = new Uint8Array(64 * 1024);

/** Zeros for a speed test, in the range of the request. */
export function filler(c: HttpContext): Response {
  const size = /^\d{1,6}$/.exec(c.req.param("size") ?? "")?.[0];
  if (size === undefined || Number(size) > MAX_FILLER_MIB) return text(`at most ${MAX_FILLER_MIB} MiB are sent`, 400);
  const sizeBytes = Number(size) * 1024 * 1024;
  const range = parseRange(c.req.header("range") ?? null, sizeBytes);
  if (range === "unsatisfiable") {
    return new Response(null, { status: 416, headers: { "content-range": `bytes */${sizeBytes}` } });
  }
  const { start, end } = range ?? { start: 0, end: sizeBytes };
  const headers = new Headers({ "content-type": "application/octet-stream", "accept-ranges": "bytes" });
  headers.set("content-length", String(end - start));
  if (range !== null) headers.set("content-range", `bytes ${start}-${end - 1}/${sizeBytes}`);
  let left = end - start;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (left === 0) return controller.close();
      const chunk = FILLER.subarray(0, Math.min(left, FILLER.length));
      left -= chunk.length;
      controller.enqueue(chunk.slice());
    },
  }, { highWaterMark: 0 });
  return new Response(c.req.raw.method === "HEAD" ? null : body, { status: range === null ? 200 : 206, headers });
}
