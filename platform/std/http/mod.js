// @ts-self-types="./mod.d.ts"
// Offline stand-in for jsr:@std/http: only what the engine uses, with the same names and semantics.
// Removing "links" from deno.json brings the real package back.

async function digest(bytes) {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return btoa(String.fromCharCode(...hash)).slice(0, 27);
}

/** Entity tag (RFC 9110 section 8.8.3) of a string or bytes; weak when `options.weak`. */
export async function eTag(entity, options = {}) {
  const bytes = typeof entity === "string" ? new TextEncoder().encode(entity) : entity;
  const tag = `"${bytes.length.toString(16)}-${await digest(bytes)}"`;
  return options.weak ? `W/${tag}` : tag;
}

const bare = (tag) => tag.trim().replace(/^W\//, "");

/** False when If-None-Match (RFC 9110 section 13.1.2) names `etag`, so that 304 is the answer. */
export function ifNoneMatch(value, etag) {
  if (!value || !etag) return true;
  if (value.trim() === "*") return false;
  return !value.split(",").some((tag) => bare(tag) === bare(etag));
}

/** True when If-Match (RFC 9110 section 13.1.1) names `etag` by strong comparison. */
export function ifMatch(value, etag) {
  if (!value || !etag) return true;
  if (value.trim() === "*") return true;
  if (etag.startsWith("W/")) return false;
  return value.split(",").some((tag) => tag.trim() === etag);
}
