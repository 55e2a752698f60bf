/** The key by which engines recognise each other: Ed25519 (RFC 8032) through WebCrypto, made once and kept in the state directory. */
import { concatBytes, fromHex, toHex } from "../../bytes/hex.ts";
import { setAside } from "../../bytes/set-aside.ts";
import { hasCode } from "../../errors.ts";
import type { Ports } from "../../ports.ts";

const ALGORITHM = "Ed25519";
const FILE = "cast-key";
/** File mode: only the owner may read and write. */
const SECRET_MODE = 0o600;
/** Longest file read, bytes: PKCS #8 has 48. */
const MAX_FILE_BYTES = 1024;
/** Purpose of a signature, so that one cannot be used for the other. */
export type CastPurpose = "hello" | "command";

/** A public key as text: 64 hexadecimal digits. */
export const CAST_KEY = /^[0-9a-f]{64}$/;

/** This engine's key pair. */
export class CastIdentity {
  /** The public key, 64 hexadecimal digits. */
  readonly key: string;
  readonly #privateKey: CryptoKey;

  private constructor(key: string, privateKey: CryptoKey) {
    this.key = key;
    this.#privateKey = privateKey;
  }

  /**
   * Loads the key from `stateDir` or makes one there; without a directory, makes one for this run. A damaged file is set
   * aside. Rejects as the file port.
   */
  static async load(
    { files, clock, log }: Pick<Ports, "files" | "clock" | "log">,
    stateDir: string | null,
  ): Promise<CastIdentity> {
    const path = `${stateDir}/${FILE}`;
    if (stateDir !== null) {
      const kept = await files.readFile(path, { maxBytes: MAX_FILE_BYTES }).catch((error) => {
        if (hasCode(error, "not_found")) return null;
        throw error;
      });
      const identity = kept === null ? null : await this.#of(kept).catch(() => null);
      if (identity !== null) return identity;
      if (kept !== null) {
        const aside = await setAside(files, clock, path);
        log.log("error", "the key for other engines was damaged: they have to allow this one again", { kept: aside });
      }
    }
    const pair = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]) as CryptoKeyPair;
    const bytes = new Uint8Array(await crypto.subtle.exportKey("pkcs8", pair.privateKey));
    if (stateDir !== null) {
      await files.makeDirectory(stateDir);
      await files.writeFile(path, bytes, { mode: SECRET_MODE });
    }
    return await this.#of(bytes);
  }

  static async #of(pkcs8: Uint8Array): Promise<CastIdentity> {
    const bytes = pkcs8 as Uint8Array<ArrayBuffer>;
    const privateKey = await crypto.subtle.importKey("pkcs8", bytes, ALGORITHM, true, ["sign"]);
    const { x } = await crypto.subtle.exportKey("jwk", privateKey);
    const digits = atob(x!.replaceAll("-", "+").replaceAll("_", "/"));
    return new CastIdentity(toHex(Uint8Array.from(digits, (char) => char.charCodeAt(0))), privateKey);
  }

  /** Signs `text` for the engine with the key `receiver`: 128 hexadecimal digits. */
  async sign(purpose: CastPurpose, receiver: string, text: string): Promise<string> {
    return toHex(
      new Uint8Array(await crypto.subtle.sign(ALGORITHM, this.#privateKey, signed(purpose, receiver, text))),
    );
  }
}

/** Whether the engine with the key `signer` signed `text` for `receiver`; false for a malformed key or signature. */
export async function isSignedBy(
  signer: string,
  signature: string,
  purpose: CastPurpose,
  receiver: string,
  text: string,
): Promise<boolean> {
  if (!CAST_KEY.test(signer) || !/^[0-9a-f]{128}$/.test(signature)) return false;
  try {
    const raw = fromHex(signer) as Uint8Array<ArrayBuffer>;
    const key = await crypto.subtle.importKey("raw", raw, ALGORITHM, false, ["verify"]);
    const bytes = fromHex(signature) as Uint8Array<ArrayBuffer>;
    return await crypto.subtle.verify(ALGORITHM, key, bytes, signed(purpose, receiver, text));
  } catch {
    return false;
  }
}

function signed(purpose: CastPurpose, receiver: string, text: string): Uint8Array<ArrayBuffer> {
  return concatBytes([new TextEncoder().encode(`millrace cast 1 ${purpose}\n${receiver}\n${text}`)]);
}

/** 32 random hexadecimal digits. */
export function randomNonce(): string {
  return toHex(crypto.getRandomValues(new Uint8Array(16)));
}
