/**
 * The key pair that signs `engine_auth_token`s. Each sign-in has one, published while the sign-in lasts, so that
 * after `sign_out` none of its tokens verifies any more.
 */
import {
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
  type JWTPayload,
  SignJWT,
} from "jose";
import { hasCode } from "../errors.ts";
import type { FilePort } from "../ports.ts";

/** ECDSA on P-256 with SHA-256 (RFC 7518 section 3.4): every JWT library verifies it. */
const ALGORITHM = "ES256";
/** File mode: only the owner may read and write. */
const SECRET_MODE = 0o600;
/** Largest key file, bytes. */
const MAX_FILE_BYTES = 4096;

/** One key pair. */
export interface SignInKey {
  /** Thumbprint of the public key (RFC 7638), `kid` of tokens. */
  readonly id: string;
  /** The public half, as published (RFC 7517). */
  readonly publicJwk: JWK;
  /** The private half. */
  readonly privateKey: CryptoKey;
  /** Makes a JWT (RFC 7519) with these claims. */
  sign(claims: JWTPayload): Promise<string>;
}

/** Stores the engine's current key. */
export interface SignInKeyStore {
  /** The key; null when there is none or its file is damaged, which ends the sign-in. */
  load(): Promise<SignInKey | null>;
  /** Makes a new key without storing it. */
  make(): Promise<SignInKey>;
  /** Stores a key in place of any earlier one. */
  keep(key: SignInKey): Promise<void>;
  remove(): Promise<void>;
}

/** Keeps the key in `<stateDir>/sign-in-key.json` (mode 600), or in memory without a state directory. */
export function createSignInKeyStore(files: FilePort, stateDir: string | null): SignInKeyStore {
  const path = stateDir === null ? null : `${stateDir}/sign-in-key.json`;
  let current: SignInKey | null | undefined = path === null ? null : undefined;
  return {
    async load() {
      return current ??= path === null ? null : await read(files, path);
    },
    async make() {
      const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true });
      return await fromJwk(await exportJWK(privateKey));
    },
    async keep(key) {
      if (path !== null) {
        await files.makeDirectory(stateDir!);
        const text = `${JSON.stringify(await exportJWK(key.privateKey))}\n`;
        await files.writeFile(path, new TextEncoder().encode(text), { mode: SECRET_MODE });
      }
      current = key;
    },
    async remove() {
      current = null;
      if (path !== null) await files.remove(path);
    },
  };
}

async function read(files: FilePort, path: string): Promise<SignInKey | null> {
  try {
    return await fromJwk(
      JSON.parse(new TextDecoder().decode(await files.readFile(path, { maxBytes: MAX_FILE_BYTES }))),
    );
  } catch (error) {
    if (hasCode(error, "io")) throw error;
    return null;
  }
}

/** Throws when `jwk` is not a private key of this kind. */
async function fromJwk(jwk: JWK): Promise<SignInKey> {
  const { kty, crv, x, y, d } = jwk;
  if (kty !== "EC" || crv !== "P-256" || x === undefined || y === undefined || d === undefined) {
    throw new TypeError("no private P-256 key");
  }
  const privateKey = await importJWK({ kty: "EC", crv, x, y, d }, ALGORITHM, { extractable: true });
  const id = await calculateJwkThumbprint({ kty, crv, x, y });
  return {
    id,
    privateKey,
    publicJwk: { kty, crv, x, y, kid: id, alg: ALGORITHM, use: "sig" },
    sign: (claims) => new SignJWT(claims).setProtectedHeader({ alg: ALGORITHM, kid: id, typ: "JWT" }).sign(privateKey),
  };
}
