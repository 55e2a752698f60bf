/** The access token of the JSON API: made once, kept in the state directory, compared in constant time. */
import { toHex } from "../bytes/hex.ts";
import { hasCode, MillraceError } from "../errors.ts";
import { setAside } from "../bytes/set-aside.ts";
import type { Ports } from "../ports.ts";

/** Bytes of entropy; 64 hexadecimal characters. */
const TOKEN_BYTES = 32;
const TOKEN = /^[0-9a-f]{64}$/;
/** File mode: only the owner may read and write. */
const SECRET_MODE = 0o600;

/** The token: its holder may call private methods. */
export interface AccessToken {
  readonly value: string;
  /** Returns whether `candidate` is the token; the time taken does not depend on where they differ. */
  matches(candidate: string): boolean;
  /**
   * Adopts a token that was put into the state directory meanwhile (`rotateAccessToken`), or makes a new one when the
   * file is damaged, as `loadAccessToken` does.
   */
  refresh(): Promise<void>;
}

/** A fixed token of 64 hexadecimal characters. Throws `config` for anything else, without repeating the text. */
export function accessToken(text: string): AccessToken {
  const value = text.trim().toLowerCase();
  if (!TOKEN.test(value)) throw new MillraceError("config", "the access token must have 64 hexadecimal characters");
  return { value, matches: (candidate) => sameSecret(candidate, value), refresh: () => Promise.resolve() };
}

/** A new random token. */
export function randomToken(): AccessToken {
  return accessToken(toHex(crypto.getRandomValues(new Uint8Array(TOKEN_BYTES))));
}

/** The parts of the machine that storing the token needs. */
export type TokenPorts = Pick<Ports, "files" | "clock" | "log">;

/**
 * The token kept in `<stateDir>/access-token`, created (mode 600) when there is none; without a state directory, one
 * for this run. A file with other contents is set aside and a new token made: damage must not end playback, and whoever
 * damaged it may have meant to lock others out.
 */
export async function loadAccessToken(ports: TokenPorts, stateDir: string | null): Promise<AccessToken> {
  if (stateDir === null) return randomToken();
  let making: Promise<AccessToken> | null = null;
  const replace = async (isDamaged: boolean) => {
    if (isDamaged) {
      const path = await setAside(ports.files, ports.clock, pathIn(stateDir));
      ports.log.log("error", "the access token's file was damaged: clients need the new token", { kept: path });
    }
    return await rotateAccessToken(ports.files, stateDir);
  };
  const load = async () => {
    const kept = await read(ports.files, stateDir);
    if (typeof kept === "string") return kept;
    // Calls that find no token share the new one: otherwise all but one of them would hold a token that nobody else knows.
    making ??= replace(kept === DAMAGED).finally(() => making = null);
    return (await making).value;
  };
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

/** Replaces the token in `<stateDir>/access-token`; a running engine adopts the new one at its next call. */
export async function rotateAccessToken(files: Ports["files"], stateDir: string): Promise<AccessToken> {
  const made = randomToken();
  await files.makeDirectory(stateDir);
  const text = new TextEncoder().encode(`${made.value}\n`);
  await files.writeFile(pathIn(stateDir), text, { mode: SECRET_MODE });
  return made;
}

const pathIn = (stateDir: string) => `${stateDir}/access-token`;

/** The file holds something other than a token. */
const DAMAGED = Symbol("damaged");

/** The token in the state directory; null when there is none. */
async function read(files: Ports["files"], stateDir: string): Promise<string | typeof DAMAGED | null> {
  const path = pathIn(stateDir);
  try {
    if ((await files.info(path)).isDirectory) return DAMAGED;
    const text = new TextDecoder().decode(await files.readFile(path, { maxBytes: 1024 })).trim();
    return TOKEN.test(text) ? text : DAMAGED;
  } catch (error) {
    if (hasCode(error, "not_found")) return null;
    if (hasCode(error, "too_large")) return DAMAGED;
    throw error;
  }
}

/** Returns whether `candidate` is `value`; the time taken does not depend on where they differ. */
export function sameSecret(candidate: string, value: string): boolean {
  let difference = candidate.length ^ value.length;
  for (let i = 0; i < value.length; i++) difference |= value.charCodeAt(i) ^ (candidate.charCodeAt(i) | 0);
  return difference === 0;
}
