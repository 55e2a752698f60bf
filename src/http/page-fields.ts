/** Fields of responses to pages of other origins (Fetch standard, CORS protocol). */

/** Fields of responses that pages of allowed origins may read besides the usual ones. */
const EXPOSED_FIELDS = "content-length, content-range, accept-ranges, etag";

/** Lets pages of `origin` read a response with these fields. */
export function allowReading(headers: Headers, origin: string): void {
  headers.set("access-control-allow-origin", origin);
  headers.set("access-control-expose-headers", EXPOSED_FIELDS);
  // Lets pages that demand it of everything they embed (Cross-Origin-Embedder-Policy) play the stream, too.
  headers.set("cross-origin-resource-policy", "cross-origin");
}
