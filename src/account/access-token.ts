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
  /**
   * Takes over a token that was put into the state directory since (`rotateAccessToken`). Rejects with `corrupt` when
   * the file was damaged: whoever did that may have meant to shut others out.
   */
  refresh(): Promise<void>;
}

/** A token of 64 hexadecimal characters that stays. Throws `config` for anything else; the text itself is never repeated. */
export function accessToken(text: string): AccessToken {
  const value = text.trim().toLowerCase();
  if (!TOKEN.test(value)) throw new MillraceError("config", "the access token is to have 64 hexadecimal characters");
  return { value, matches: (candidate) => sameSecret(candidate, value), refresh: () => Promise.resolve() };
}

/** A new random token. */
export function randomToken(): AccessToken {
  return accessToken(toHex(crypto.getRandomValues(new Uint8Array(TOKEN_BYTES))));
}

/**
 * The token kept in `<stateDir>/access-token`, made (mode 600) when there is none; without a state directory one for this
 * run. Rejects with `corrupt` when the file holds something else: it is not replaced, clients may still rely on it.
 */
export async function loadAccessToken(files: FilePort, stateDir: string | null): Promise<AccessToken> {
  if (stateDir === null) return randomToken();
  let making: Promise<AccessToken> | null = null;
  // One for all calls that find none: each its own would leave all but one with a token that nobody else knows.
  const make = () => making ??= rotateAccessToken(files, stateDir).finally(() => making = null);
  const load = async () => await read(files, stateDir) ?? (await make()).value;
  let value = await load();
  return {
    get value() {
      return value;
    },
    matches: (candidate) => sameSecret(candidate, value),
    async refresh() {
      value = await load();
    },
  };
}

/** Replaces the token in `<stateDir>/access-token` by a new one; a running engine takes it over at its next call. */
export async function rotateAccessToken(files: FilePort, stateDir: string): Promise<AccessToken> {
  const made = randomToken();
  await files.makeDirectory(stateDir);
  const text = new TextEncoder().encode(`${made.value}\n`);
  await files.writeFile(pathIn(stateDir), text, { mode: SECRET_MODE });
  return made;
}

const pathIn = (stateDir: string) => `${stateDir}/access-token`;

/** The token in the state directory; null when there is none. */
async function read(files: FilePort, stateDir: string): Promise<string | null> {
  const path = pathIn(stateDir);
  try {
    const text = new TextDecoder().decode(await files.readFile(path, { maxBytes: 1024 }));
    if (TOKEN.test(text.trim())) return text.trim();
    throw new MillraceError("corrupt", `${path} does not hold an access token; remove it to get a new one`);
  } catch (error) {
    if (hasCode(error, "not_found")) return null;
    throw error;
  }
}

/** Whether `candidate` is `value`, in a time that does not depend on where they differ. */
export function sameSecret(candidate: string, value: string): boolean {
  let difference = candidate.length ^ value.length;
  for (let i = 0; i < value.length; i++) difference |= value.charCodeAt(i) ^ (candidate.charCodeAt(i) | 0);
  return difference === 0;
}
