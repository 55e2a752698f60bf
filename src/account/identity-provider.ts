/** Sign-in through an identity provider: checks the ID tokens of OpenID Connect (Core 1.0 section 3.1.3.7). */
import { trimEndOf } from "../bytes/trim.ts";
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTPayload, jwtVerify, type JWTVerifyOptions } from "jose";
import { type ErrorCode, hasCode, MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";

/** Whom the provider vouches for. */
export interface Identity {
  readonly issuer: string;
  /** The user's id at the issuer; never given to another. */
  readonly subject: string;
  /** What the user is called: the verified email, else the preferred name, else the subject. */
  readonly login: string;
}

/** What the provider is asked with. */
export interface IdentityProviderOptions {
  /** `iss` of its tokens and base of its discovery document. https, or http on this machine. */
  readonly issuer: string;
  /** `aud` that tokens must carry: our client id there. */
  readonly audience: string;
  readonly clock: Clock;
  /** GETs an address; `allowPrivate` where the operator named its host. */
  readonly fetchBytes: (
    url: string,
    options: { maxBytes: number; allowPrivate: boolean },
    signal: AbortSignal,
  ) => Promise<{ bytes: Uint8Array; url: string }>;
}

/** Longest token, characters: providers put whole profiles in. */
const MAX_TOKEN_CHARS = 16 * 1024;
/** Three parts in base64url without padding (RFC 7515 sections 2 and 7.1); decoders let more pass. */
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]+$/;
/** Largest discovery document or key set, bytes. */
const MAX_DOCUMENT_BYTES = 256 * 1024;
/** How long keys are used before they are asked for again, ms. */
const KEYS_TTL_MS = 10 * 60_000;
/** A token with an unknown key may have new ones fetched this often, ms: else forged tokens would flood the provider. */
const REFETCH_AFTER_MS = 30_000;
/** How far the clocks may differ, s. */
const CLOCK_TOLERANCE_S = 60;
/** Signatures by public keys. `none` and the symmetric kind would let anybody make tokens. */
const ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"];
/** Longest name kept, characters. */
const MAX_LOGIN_CHARS = 254;

interface Keys {
  readonly find: ReturnType<typeof createLocalJWKSet>;
  readonly fetchedMs: number;
}

/** Throws `config` unless the tokens of `issuer` can be relied on. */
function requireIssuer(issuer: string): void {
  const { protocol, hostname, search, hash } = new URL(issuer);
  const isHere = hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
  if (protocol !== "https:" && !(protocol === "http:" && isHere)) {
    throw new MillraceError("config", "--oidc-issuer needs https: over http anybody on the way could sign in");
  }
  if (search !== "" || hash !== "") throw new MillraceError("config", "--oidc-issuer has no query and no fragment");
}

/** Checks ID tokens of one provider. Asks it nothing before the first sign-in. */
export class IdentityProvider {
  private readonly options: IdentityProviderOptions;
  private keys: Keys | null = null;

  /** Throws `config` for an issuer that cannot be relied on. */
  constructor(options: IdentityProviderOptions) {
    requireIssuer(options.issuer);
    this.options = options;
  }

  /**
   * Whom `token` names; null when it is not valid: another issuer or audience, expired, not signed by the provider.
   * Rejects with `unavailable`, `connection_failed` or `timeout` when the provider cannot be asked.
   */
  async verify(token: string, signal: AbortSignal): Promise<Identity | null> {
    if (token.length > MAX_TOKEN_CHARS || !COMPACT.test(token)) return null;
    const keys = await this.freshKeys(KEYS_TTL_MS, signal);
    const payload = await this.check(token, keys);
    if (payload !== "unknown_key") return payload === null ? null : this.identityOf(payload);
    // The provider may have changed its keys.
    const newer = await this.freshKeys(REFETCH_AFTER_MS, signal);
    if (newer === keys) return null;
    const again = await this.check(token, newer);
    return again === null || again === "unknown_key" ? null : this.identityOf(again);
  }

  /** What a valid token says; null for one that is not. */
  private async check(token: string, keys: Keys): Promise<JWTPayload | null | "unknown_key"> {
    const { issuer, audience, clock } = this.options;
    const options: JWTVerifyOptions = {
      // With and without a slash at its end it is the same issuer to its operator, and so to the option.
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
      // A set whose keys have no ids (RFC 7517 section 4.5): one of them it is.
      for await (const key of error) {
        try {
          return (await jwtVerify(token, key, options)).payload;
        } catch (cause) {
          if (!(cause instanceof errors.JWSSignatureVerificationFailed)) return refusal(cause);
        }
      }
      return null;
    }
  }

  private identityOf(payload: JWTPayload): Identity | null {
    const { sub, iss, aud, azp, email, email_verified: isVerified, preferred_username: name } = payload;
    if (typeof sub !== "string" || sub === "" || sub.length > 255 || typeof iss !== "string") return null;
    // A token for several parties says which of them asked for it (Core section 3.1.3.7, 4 and 5).
    if (azp !== undefined ? azp !== this.options.audience : Array.isArray(aud) && aud.length > 1) return null;
    const login = typeof email === "string" && email !== "" && isVerified === true
      ? email
      : typeof name === "string" && name !== ""
      ? name
      : sub;
    return { issuer: iss, subject: sub, login: login.slice(0, MAX_LOGIN_CHARS) };
  }

  /** The provider's keys, asked for unless that was done less than `maxAgeMs` ago. */
  private async freshKeys(maxAgeMs: number, signal: AbortSignal): Promise<Keys> {
    const { keys, options } = this;
    if (keys !== null && options.clock.monotonic() - keys.fetchedMs < maxAgeMs) return keys;
    return this.keys = await this.fetchKeys(signal);
  }

  private async fetchKeys(signal: AbortSignal): Promise<Keys> {
    const { issuer, clock } = this.options;
    const base = trimEndOf(issuer, "/");
    // Discovery 1.0 section 4.
    const discovery = await this.fetchJson(`${base}/.well-known/openid-configuration`, signal);
    const { issuer: named, jwks_uri: keysUrl } = discovery as { issuer?: unknown; jwks_uri?: unknown };
    if (named !== issuer && named !== `${issuer}/`) throw unusable("its discovery document names another issuer");
    if (typeof keysUrl !== "string" || !URL.canParse(keysUrl)) throw unusable("its discovery document names no keys");
    const set = await this.fetchJson(keysUrl, signal);
    try {
      return { find: createLocalJWKSet(set as JSONWebKeySet), fetchedMs: clock.monotonic() };
    } catch (cause) {
      throw unusable("its keys are not a JWK set", cause);
    }
  }

  /** Only the host that the operator named may be a private one, and what comes over https stays on https. */
  private async fetchJson(url: string, signal: AbortSignal): Promise<object> {
    const issuer = new URL(this.options.issuer);
    if (issuer.protocol === "https:" && new URL(url).protocol !== "https:") throw unusable("its keys are not on https");
    const allowPrivate = new URL(url).host === issuer.host;
    const limits = { maxBytes: MAX_DOCUMENT_BYTES, allowPrivate };
    const answer = await this.options.fetchBytes(url, limits, signal).catch((error) => {
      // Of other failures the operator is to know, not the caller, who named no address.
      if (["aborted", "timeout", "connection_failed"].some((code) => hasCode(error, code as ErrorCode))) throw error;
      throw unusable(`${new URL(url).host} gives no document`, error);
    });
    if (issuer.protocol === "https:" && new URL(answer.url).protocol !== "https:") {
      throw unusable("it leads away from https");
    }
    try {
      const value: unknown = JSON.parse(new TextDecoder().decode(answer.bytes));
      if (typeof value === "object" && value !== null) return value;
    } catch {
      // Told below.
    }
    throw unusable("it does not answer JSON");
  }
}

/** What the caller's token is to blame for is a refusal; anything else is a fault. */
function refusal(error: unknown): null {
  if (error instanceof errors.JOSEError) return null;
  throw error;
}

function unusable(why: string, cause?: unknown): MillraceError {
  return new MillraceError("unavailable", `the identity provider cannot be used: ${why}`, { cause });
}
