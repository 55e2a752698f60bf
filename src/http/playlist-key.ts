/**
 * Keys in addresses that leave the machine, in players' settings and in lists. Each opens one list or one stream and
 * nothing else, and a new access token invalidates all of them. HMAC-SHA-256 (RFC 2104) under the access token.
 */
import { type AccessToken, sameSecret } from "../account/access-token.ts";
import { toHex } from "../bytes/hex.ts";
import type { StreamSelector } from "../content/selector.ts";
import { MillraceError } from "../errors.ts";

/** Characters of a key: 128 bits. */
const KEY_CHARS = 32;

/** Key of `/engine/playlist.m3u` for the list of `owner`, empty for the whole list; 32 hexadecimal characters. */
export async function playlistKey(accessToken: string, owner: string): Promise<string> {
  return sign(await signingKey(accessToken), `playlist.m3u ${owner}`);
}

/**
 * Makes keys of streams, 32 hexadecimal characters each, from the kind of the selector and its value. A signed address
 * is one that the user's list contained.
 */
export async function playbackKeys(accessToken: string): Promise<(kind: string, value: string) => Promise<string>> {
  const key = await signingKey(accessToken);
  return (kind, value) => sign(key, `play ${kind} ${value}`);
}

/**
 * Whether the address of a stream was signed: false without a key. Rejects with `denied` when the key is wrong: it was cut,
 * or signed with a token that has been replaced.
 */
export async function isSigned(token: AccessToken, key: string | undefined, stream: StreamSelector): Promise<boolean> {
  if (key === undefined) return false;
  if (stream.kind !== "transport_file") return await isSignedAs(token, key, stream.kind, valueOf(stream));
  throw outdated();
}

/** As `isSigned`, for anything that `playbackKeys` made a key of. */
export async function isSignedAs(
  token: AccessToken,
  key: string | undefined,
  kind: string,
  value: string,
): Promise<boolean> {
  if (key === undefined) return false;
  await token.refresh();
  const keyOf = await playbackKeys(token.value);
  if (sameSecret(key, await keyOf(kind, value))) return true;
  throw outdated();
}

function outdated(): MillraceError {
  return new MillraceError("denied", "the key of this address is not valid any more: open the playlist again");
}

function valueOf(stream: Exclude<StreamSelector, { kind: "transport_file" }>): string {
  switch (stream.kind) {
    case "content_id":
      return stream.contentId;
    case "infohash":
      return stream.infohash;
    case "url":
      return stream.url;
    case "magnet":
      return stream.magnet;
  }
}

function signingKey(accessToken: string): Promise<CryptoKey> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  return crypto.subtle.importKey("raw", new TextEncoder().encode(accessToken), algorithm, false, ["sign"]);
}

async function sign(key: CryptoKey, text: string): Promise<string> {
  const signature = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(text));
  return toHex(new Uint8Array(signature)).slice(0, KEY_CHARS);
}
