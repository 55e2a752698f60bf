/** Sign-in through an identity provider: checks the ID tokens of OpenID Connect (Core 1.0 section 3.1.3.7). */
import { trimEndOf } from "../bytes/trim.ts";
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTPayload, jwtVerify, type JWTVerifyOptions } from "jose";
import { type ErrorCode, hasCode, MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";

/** A user whose identity the provider confirms. */
export interface Identity {
  readonly issuer: string;
  /** The user's id at the issuer; never reassigned. */
  readonly subject: string;
  /** The user's display name: the verified email, else the preferred name, else the subject. */
  readonly login: string;
}

/** Settings of an identity provider. */
export interface IdentityProviderOptions {
  /** `iss` of its tokens and base of its discovery document. https, or http on this machine. */
  readonly issuer: string;
  /** The `aud` that tokens must carry: our client id at the provider. */
  readonly audience: string;
  readonly clock: Clock;
  /** GETs an address; `allowPrivate` is set for the host that the operator named. */
  readonly fetchBytes: (
    url: string,
    options: { maxBytes: number; allowPrivate: boolean },
    signal: AbortSignal,
  ) => Promise<{ bytes: Uint8Array; url: string }>;
}

/** Longest token, characters: providers include whole profiles. */
const MAX_TOKEN_CHARS = 16 * 1024;
/** Three parts in base64url without padding (RFC 7515 sections 2 and 7.1); decoders accept more than that. */
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]+$/;
/** Largest discovery document or key set, bytes. */
const MAX_DOCUMENT_BYTES = 256 * 1024;
/** Most keys of a provider; each costs a signature check when they have no ids. Google has 2, Microsoft about 10. */
const MAX_KEYS = 100;
/** How long keys are used before they are fetched again, ms. */
const KEYS_TTL_MS = 10 * 60_000;
/** Shortest time between fetches caused by unknown keys, ms: otherwise forged tokens would flood the provider. */
const REFETCH_AFTER_MS = 30_000;
/** How much the clocks may differ, s. */
const CLOCK_TOLERANCE_S = 60;
/** Public-key signatures only. `none` and symmetric algorithms would let anybody make tokens. */
const ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];
/** Longest name kept, characters. */
const MAX_LOGIN_CHARS = 254;

interface Keys {
  readonly find: ReturnType<typeof createLocalJWKSet>;
  readonly fetchedMs: number;
}

/** Throws `config` unless the tokens of `issuer` can be trusted. */
function requireIssuer(issuer: string): void {
  const { protocol, hostname, search, hash } = new URL(issuer);
  const isHere = hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
  if (protocol !== "https:" && !(protocol === "http:" && isHere)) {
    throw new MillraceError("config", "--oidc-issuer needs https: over http anybody on the network path could sign in");
  }
  if (search !== "" || hash !== "") {
    throw new MillraceError("config", "--oidc-issuer must have no query and no fragment");
  }
}

/** Checks ID tokens of one provider. Sends it nothing before the first sign-in. */
export class IdentityProvider {
  readonly #options: IdentityProviderOptions;
  #keys: Keys | null = null;

  /** Throws `config` for an issuer that cannot be trusted. */
  constructor(options: IdentityProviderOptions) {
    requireIssuer(options.issuer);
    this.#options = options;
  }

  /**
   * The user named by `token`; null when it is invalid: another issuer or audience, expired, not signed by the
   * provider. Rejects with `unavailable`, `connection_failed` or `timeout` when the provider cannot be reached or used.
   */
  async verify(token: string, signal: AbortSignal): Promise<Identity | null> {
    if (token.length > MAX_TOKEN_CHARS || !COMPACT.test(token)) return null;
    const keys = await this.#freshKeys(KEYS_TTL_MS, signal);
    const payload = await this.#check(token, keys);
    if (payload !== "unknown_key") return payload === null ? null : this.#identityOf(payload);
    // The provider may have changed its keys.
    const newer = await this.#freshKeys(REFETCH_AFTER_MS, signal);
    if (newer === keys) return null;
    const again = await this.#check(token, newer);
    return again === null || again === "unknown_key" ? null : this.#identityOf(again);
  }

  /** The claims of a valid token; null for an invalid one. */
  async #check(token: string, keys: Keys): Promise<JWTPayload | null | "unknown_key"> {
    const { issuer, audience, clock } = this.#options;
    const options: JWTVerifyOptions = {
      // Operators write the same issuer with or without a slash at the end, and so does the option.
      issuer: [issuer, `${issuer}/`],
      audience,
      algorithms: ALGORITHMS,
      clockTolerance: CLOCK_TOLERANCE_S,
      currentDate: new Date(clock.now()),
      requiredClaims: ["sub", "exp", "iat"],
    };
    try {
      return (await jwtVerify(token, keys.find, options)).payload;
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) return "unknown_key";
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) return refusal(error);
      // The keys have no ids (RFC 7517 section 4.5), so any of them may be the right one.
      for await (const key of error) {
        try {
          return (await jwtVerify(token, key, options)).payload;
        } catch (cause) {
          // A key that cannot be used, too short or not for this algorithm, is none of JOSE's errors and not the right one.
          const isWrongKey = !(cause instanceof errors.JOSEError) ||
            cause instanceof errors.JWSSignatureVerificationFailed;
          if (!isWrongKey) return null;
        }
      }
      return null;
    }
  }

  #identityOf(payload: JWTPayload): Identity | null {
    const { sub, iss, aud, azp, email, email_verified: isVerified, preferred_username: name } = payload;
    if (typeof sub !== "string" || sub === "" || sub.length > 255 || typeof iss !== "string") return null;
    // A token for several parties names the one that requested it (Core section 3.1.3.7, 4 and 5).
    if (azp !== undefined ? azp !== this.#options.audience : Array.isArray(aud) && aud.length > 1) return null;
    const login = typeof email === "string" && email !== "" && isVerified === true
      ? email
      : typeof name === "string" && name !== ""
      ? name
      : sub;
    return { issuer: iss, subject: sub, login: login.slice(0, MAX_LOGIN_CHARS) };
  }

  /** The provider's keys, fetched unless they are less than `maxAgeMs` old. */
  async #freshKeys(maxAgeMs: number, signal: AbortSignal): Promise<Keys> {
    const keys = this.#keys;
    const options = this.#options;
    if (keys !== null && options.clock.monotonic() - keys.fetchedMs < maxAgeMs) return keys;
    return this.#keys = await this.#fetchKeys(signal);
  }

  async #fetchKeys(signal: AbortSignal): Promise<Keys> {
    const { issuer, clock } = this.#options;
    const base = trimEndOf(issuer, "/");
    // Discovery 1.0 section 4.
    const discovery = await this.#fetchJson(`${base}/.well-known/openid-configuration`, signal);
    const { issuer: named, jwks_uri: keysUrl } = discovery as { issuer?: unknown; jwks_uri?: unknown };
    if (named !== issuer && named !== `${issuer}/`) throw unusable("its discovery document names another issuer");
    if (typeof keysUrl !== "string" || !URL.canParse(keysUrl)) throw unusable("its discovery document names no keys");
    const set = await this.#fetchJson(keysUrl, signal);
    const count = (set as { keys?: { length?: unknown } }).keys?.length;
    if (typeof count === "number" && count > MAX_KEYS) throw unusable(`it has more than ${MAX_KEYS} keys`);
    try {
      return { find: createLocalJWKSet(set as JSONWebKeySet), fetchedMs: clock.monotonic() };
    } catch (cause) {
      throw unusable("its keys are not a JWK set", cause);
    }
  }

  /** Fetches JSON. Only the host that the operator named may be private, and https leads only to https. */
  async #fetchJson(url: string, signal: AbortSignal): Promise<object> {
    const issuer = new URL(this.#options.issuer);
    if (issuer.protocol === "https:" && new URL(url).protocol !== "https:") throw unusable("its keys are not on https");
    const allowPrivate = new URL(url).host === issuer.host;
    const limits = { maxBytes: MAX_DOCUMENT_BYTES, allowPrivate };
    const answer = await this.#options.fetchBytes(url, limits, signal).catch((error) => {
      // Other failures are for the operator, not for the caller, who named no address.
      if (["aborted", "timeout", "connection_failed"].some((code) => hasCode(error, code as ErrorCode))) throw error;
      throw unusable(`${new URL(url).host} gives no document`, error);
    });
    if (issuer.protocol === "https:" && new URL(answer.url).protocol !== "https:") {
      throw unusable("it redirects away from https");
    }
    try {
      const value: unknown = JSON.parse(new TextDecoder().decode(answer.bytes));
      if (typeof value === "object" && value !== null) return value;
    } catch {
      // Reported below.
    }
    throw unusable("it does not return JSON");
  }
}

/** Errors caused by the caller's token become a refusal (null); any other comes from the key that it names, and is thrown. */
function refusal(error: unknown): null {
  if (error instanceof errors.JOSEError) return null;
  throw unusable("its key cannot be used", error);
}

function unusable(why: string, cause?: unknown): MillraceError {
  return new MillraceError("unavailable", `the identity provider cannot be used: ${why}`, { cause });
}
