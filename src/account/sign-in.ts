/**
 * The sign-in at this engine: section 2.10 of the HTTP API and `sign_in`, `sign_out`, `check_auth` of section 4.4.
 * One user at a time. A sign-in is a row in the database and a key in the state directory, each worthless without
 * the other, so that it survives a restart and engines that share a database each have their own.
 */
import type { JWK } from "jose";
import { toHex } from "../bytes/hex.ts";
import type { Store } from "../database/store.ts";
import { machineKey } from "../bytes/machine-key.ts";
import { MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";
import { type Accounts, normalEmail, type VerifiedAccount } from "./accounts.ts";
import { AttemptLimiter } from "./attempt-limiter.ts";
import type { IdentityProvider } from "./identity-provider.ts";
import type { SignInKey, SignInKeyStore } from "./sign-in-key.ts";

/** A user's email and password, or an identity provider's token. */
export type Credentials =
  | { readonly kind: "password"; readonly email: string; readonly password: string }
  | { readonly kind: "identity"; readonly token: string };

/** The result of an attempt. */
export type SignInOutcome =
  | { readonly kind: "signed_in" }
  | { readonly kind: "refused" }
  | Limited;

/** Too many attempts from that address or for that account. */
interface Limited {
  readonly kind: "limited";
  readonly waitMs: number;
}

/** The result of checking a password. */
export type PasswordOutcome =
  | { readonly kind: "verified"; readonly account: VerifiedAccount }
  | { readonly kind: "refused" }
  | Limited;

const SIGNED_IN = { kind: "signed_in" } as const;

/** A sign-in in force. */
export interface SignedIn {
  readonly login: string;
  /** Identifies this sign-in and is not a secret; `sid` of its tokens. */
  readonly sessionId: string;
  /** A token that proves to others who is signed in here, valid `AUTH_TOKEN_TTL_S`; `issuer` is the engine's base URL. */
  authToken(issuer: string): Promise<string>;
}

/** The parts of sign-in. */
export interface SignInParts {
  readonly store: Store;
  readonly accounts: Pick<Accounts, "verify">;
  readonly keys: SignInKeyStore;
  /** Null when none is configured. */
  readonly identityProvider: IdentityProvider | null;
  readonly clock: Clock;
}

/** How long a sign-in lasts, s. */
const SIGN_IN_TTL_S = 90 * 86_400;
/** How long one `engine_auth_token` is valid, s; each `check_auth` returns a new one. */
const AUTH_TOKEN_TTL_S = 3600;
/** Per address: ten failures, then two attempts per minute. */
const ADDRESS_LIMIT = { burst: 10, refillMs: 30_000 };
/** Per account: five failures, then one attempt per minute, from any address. */
const ACCOUNT_LIMIT = { burst: 5, refillMs: 60_000 };
/** Queued attempts: passwords are checked one after another, each taking 16 MiB and 0.4 s. */
const MAX_WAITING = 16;

/** Signs the engine's one user in and out, and says who it is. */
export class SignIn {
  readonly #parts: SignInParts;
  readonly #byAddress: AttemptLimiter;
  readonly #byAccount: AttemptLimiter;
  #waiting = 0;
  /** Sign-in and sign-out run one after another: each changes the key and the row. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: SignInParts) {
    this.#parts = parts;
    this.#byAddress = new AttemptLimiter(parts.clock, ADDRESS_LIMIT);
    this.#byAccount = new AttemptLimiter(parts.clock, ACCOUNT_LIMIT);
  }

  /** Checks a password within the limits of `signIn`, and changes nothing. */
  async verify(email: string, password: string, clientHost: string, signal: AbortSignal): Promise<PasswordOutcome> {
    const { accounts } = this.#parts;
    const check = () => this.#inTurn(() => signal.aborted ? Promise.resolve(null) : accounts.verify(email, password));
    const account = await this.#limited(clientHost, normalEmail(email), check);
    if (account === null) return { kind: "refused" };
    return "waitMs" in account ? account : { kind: "verified", account };
  }

  /**
   * Signs in, replacing any earlier user. Rejects with `unavailable` when no identity provider is configured or it
   * cannot be used, `connection_failed` or `timeout` when it cannot be reached.
   */
  async signIn(credentials: Credentials, clientHost: string, signal: AbortSignal): Promise<SignInOutcome> {
    const account = credentials.kind === "password" ? normalEmail(credentials.email) : null;
    const outcome = await this.#limited(clientHost, account, async () => {
      return await this.#attempt(credentials, signal) ? SIGNED_IN : null;
    });
    return outcome ?? { kind: "refused" };
  }

  /** The result of `attempt`, null for one that failed; later ones of that address and `account` have to wait more and more. */
  async #limited<T>(
    clientHost: string,
    email: string | null,
    attempt: () => Promise<T | null>,
  ): Promise<T | Limited | null> {
    const address = machineKey(clientHost);
    const account = email?.slice(0, 254) ?? null;
    const waitMs = Math.max(this.#byAddress.waitMs(address), account === null ? 0 : this.#byAccount.waitMs(account));
    if (waitMs > 0) return { kind: "limited", waitMs };
    if (this.#waiting >= MAX_WAITING) return { kind: "limited", waitMs: 1000 };
    this.#byAddress.take(address);
    if (account !== null) this.#byAccount.take(account);
    this.#waiting++;
    try {
      const result = await attempt();
      if (result === null) return null;
      this.#byAddress.giveBack(address);
      if (account !== null) this.#byAccount.giveBack(account);
      return result;
    } finally {
      this.#waiting--;
    }
  }

  /** Ends the sign-in, if any. From then on none of its tokens verifies with the keys of `publicKeys`. */
  async signOut(): Promise<void> {
    await this.#inTurn(async () => {
      const key = await this.#parts.keys.load();
      if (key === null) return;
      const db = await this.#parts.store.open();
      await db.deleteFrom("sign_ins").where("key_id", "=", key.id).execute();
      await this.#parts.keys.remove();
    });
  }

  /** The current sign-in, or null. */
  async current(): Promise<SignedIn | null> {
    const found = await this.#find();
    if (found === null) return null;
    const { key, row } = found;
    return {
      login: row.login,
      sessionId: row.session_id,
      authToken: (issuer) => {
        const now = this.#nowS();
        return key.sign({
          iss: issuer,
          sub: row.subject,
          ...(row.issuer === null ? {} : { idp: row.issuer }),
          login: row.login,
          sid: row.session_id,
          jti: toHex(crypto.getRandomValues(new Uint8Array(16))),
          iat: now,
          exp: Math.min(now + AUTH_TOKEN_TTL_S, row.expires_at),
        });
      },
    };
  }

  /** The keys that verify tokens of the current sign-in: one, or none. */
  async publicKeys(): Promise<JWK[]> {
    const found = await this.#find();
    return found === null ? [] : [found.key.publicJwk];
  }

  async #attempt(credentials: Credentials, signal: AbortSignal): Promise<boolean> {
    const { accounts, identityProvider } = this.#parts;
    if (credentials.kind === "password") {
      return await this.#inTurn(async () => {
        if (signal.aborted) return false;
        const account = await accounts.verify(credentials.email, credentials.password);
        if (account === null) return false;
        const { id, email, record } = account;
        return await this.#begin({ account_id: id, login: email, issuer: null, subject: `account:${id}` }, record);
      });
    }
    if (identityProvider === null) {
      throw new MillraceError("unavailable", "no identity provider is configured; see --oidc-issuer");
    }
    const identity = await identityProvider.verify(credentials.token, signal);
    if (identity === null) return false;
    const { login, issuer, subject } = identity;
    return await this.#inTurn(() => this.#begin({ account_id: null, login, issuer, subject }, null));
  }

  /** False when the account was removed or its password changed during the check. */
  async #begin(
    who: { account_id: number | null; login: string; issuer: string | null; subject: string },
    record: string | null,
  ): Promise<boolean> {
    const { store, keys } = this.#parts;
    const db = await store.open();
    const before = await keys.load();
    const key = await keys.make();
    const now = this.#nowS();
    const isStill = await db.transaction().execute(async (trx) => {
      if (who.account_id !== null) {
        const row = await trx.selectFrom("accounts").select("password").where("id", "=", who.account_id)
          .executeTakeFirst();
        if (row?.password !== record) return false;
      }
      await trx.deleteFrom("sign_ins").where((eb) =>
        eb.or([eb("expires_at", "<=", now), eb("key_id", "=", before?.id ?? "")])
      ).execute();
      await trx.insertInto("sign_ins").values({
        ...who,
        key_id: key.id,
        session_id: toHex(crypto.getRandomValues(new Uint8Array(16))),
        created_at: now,
        expires_at: now + SIGN_IN_TTL_S,
      }).execute();
      return true;
    });
    // Last, because the row is worthless until the key is stored.
    if (isStill) await keys.keep(key);
    return isStill;
  }

  async #find() {
    const key: SignInKey | null = await this.#parts.keys.load();
    if (key === null) return null;
    const db = await this.#parts.store.open();
    const row = await db.selectFrom("sign_ins").selectAll().where("key_id", "=", key.id)
      .where("expires_at", ">", this.#nowS()).executeTakeFirst();
    return row === undefined ? null : { key, row };
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work, work);
    this.#last = turn.catch(() => {});
    return turn;
  }

  #nowS(): number {
    return Math.floor(this.#parts.clock.now() / 1000);
  }
}
