/** Checks names and passwords of the engine's accounts for fronts, whose clients send both with every request. */
import type { SignIn } from "../../account/sign-in.ts";
import { toHex } from "../../bytes/hex.ts";
import type { Clock } from "../../ports.ts";

/** How long a password that was right is not checked again, ms: a check takes 16 MiB and 0.4 s. A changed one is refused after this. */
const REMEMBERED_MS = 60_000;
/** Passwords remembered, each a hash of 64 characters: a household has fewer devices. */
const MAX_REMEMBERED = 256;
/** Longest name and password, characters, as in `sign_in`. */
const MAX_CHARS = 1024;

/** The result of a check. */
export type LoginOutcome = "right" | "wrong" | "too_often";

/** Remembers passwords that were right, by a hash under a key of this run. */
export class FrontLogins {
  readonly #signIn: Pick<SignIn, "verify">;
  readonly #clock: Clock;
  readonly #key: Promise<CryptoKey>;
  /** When it is forgotten, monotonic ms; the oldest first. */
  readonly #right = new Map<string, number>();
  /** Checks under way: clients send several requests at once. */
  readonly #checking = new Map<string, Promise<LoginOutcome>>();

  constructor(signIn: Pick<SignIn, "verify">, clock: Clock) {
    this.#signIn = signIn;
    this.#clock = clock;
    const algorithm = { name: "HMAC", hash: "SHA-256" };
    const secret = crypto.getRandomValues(new Uint8Array(32));
    this.#key = crypto.subtle.importKey("raw", secret, algorithm, false, ["sign"]);
  }

  /** Checks an account's address and password, within the limits of signing in. */
  async check(user: string, password: string, clientHost: string, signal: AbortSignal): Promise<LoginOutcome> {
    if (user === "" || password === "" || user.length > MAX_CHARS || password.length > MAX_CHARS) return "wrong";
    const bytes = new TextEncoder().encode(JSON.stringify([user, password]));
    const name = toHex(new Uint8Array(await crypto.subtle.sign("HMAC", await this.#key, bytes)));
    const now = this.#clock.monotonic();
    if ((this.#right.get(name) ?? -Infinity) > now) return "right";
    this.#right.delete(name);
    let checking = this.#checking.get(name);
    if (checking === undefined) {
      checking = this.#verify(user, password, clientHost, signal).finally(() => this.#checking.delete(name));
      this.#checking.set(name, checking);
    }
    const outcome = await checking;
    if (outcome === "right") this.#remember(name);
    return outcome;
  }

  async #verify(user: string, password: string, host: string, signal: AbortSignal): Promise<LoginOutcome> {
    const { kind } = await this.#signIn.verify(user, password, host, signal);
    return kind === "verified" ? "right" : kind === "limited" ? "too_often" : "wrong";
  }

  #remember(name: string): void {
    this.#right.set(name, this.#clock.monotonic() + REMEMBERED_MS);
    if (this.#right.size <= MAX_REMEMBERED) return;
    for (const oldest of this.#right.keys()) return void this.#right.delete(oldest);
  }
}

/** User and password of an `Authorization` field of the scheme Basic (RFC 7617); null when it has none. */
export function basicCredentials(
  field: string | undefined,
): { readonly user: string; readonly password: string } | null {
  const [, encoded] = /^Basic +([A-Za-z0-9+/=]{1,4096})$/i.exec(field ?? "") ?? [];
  if (encoded === undefined) return null;
  try {
    const text = new TextDecoder().decode(Uint8Array.from(atob(encoded), (char) => char.charCodeAt(0)));
    const colon = text.indexOf(":");
    return colon < 0 ? null : { user: text.slice(0, colon), password: text.slice(colon + 1) };
  } catch {
    return null;
  }
}
