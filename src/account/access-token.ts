/** The access token of the JSON API (B23): made once, kept in the state directory, compared in constant time. */
import { toHex } from "../bytes/hex.ts";
import { hasCode, MillraceError } from "../errors.ts";
import type { FilePort } from "../ports.ts";

/** Bytes of entropy; 64 hexadecimal characters. */
const TOKEN_BYTES = 32;
const TOKEN = /^[0-9a-f]{64}$/;
/** Read and write for the owner alone. */
const SECRET_MODE = 0o600;

/** Whoever holds the token may call private methods. */
export interface AccessToken {
  readonly value: string;
  /** Whether `candidate` is the token, in a time that does not depend on where they differ. */
  matches(candidate: string): boolean;
}

/** A token of 64 hexadecimal characters. Throws `config` for anything else; the text itself is never repeated. */
export function accessToken(text: string): AccessToken {
  const value = text.trim().toLowerCase();
  if (!TOKEN.test(value)) throw new MillraceError("config", "the access token is to have 64 hexadecimal characters");
  return {
    value,
    matches(candidate) {
      let difference = candidate.length ^ value.length;
      for (let i = 0; i < value.length; i++) difference |= value.charCodeAt(i) ^ (candidate.charCodeAt(i) | 0);
      return difference === 0;
    },
  };
}

/** A new random token. */
export function randomToken(): AccessToken {
  return accessToken(toHex(crypto.getRandomValues(new Uint8Array(TOKEN_BYTES))));
}

/**
 * The token kept in `<stateDir>/access-token`, made (mode 600) when there is none; without a state directory one for this
 * run. Throws `corrupt` when the file holds something else: it is not replaced, clients may still rely on it.
 */
export async function loadAccessToken(files: FilePort, stateDir: string | null): Promise<AccessToken> {
  if (stateDir === null) return randomToken();
  const path = `${stateDir}/access-token`;
  try {
    const text = new TextDecoder().decode(await files.readFile(path, { maxBytes: 1024 }));
    if (!TOKEN.test(text.trim())) {
      throw new MillraceError("corrupt", `${path} does not hold an access token; remove it to get a new one`);
    }
    return accessToken(text);
  } catch (error) {
    if (!hasCode(error, "not_found")) throw error;
  }
  const made = randomToken();
  await files.makeDirectory(stateDir);
  await files.writeFile(path, new TextEncoder().encode(`${made.value}\n`), { mode: SECRET_MODE });
  return made;
}
