/**
 * Devices of the household on which somebody signed in to the engine's page. Each has a token of its own, which opens what the
 * access token opens, until the device is removed, its account is removed or gets another password, or nobody uses it any more.
 */
import { toHex } from "../bytes/hex.ts";
import type { Store } from "../database/store.ts";
import { MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";
import type { VerifiedAccount } from "./accounts.ts";

/** A device that is signed in. Times are Unix seconds. */
export interface Device {
  readonly id: number;
  /** Address of the account. */
  readonly login: string;
  /** What its browser says it is. */
  readonly name: string;
  readonly createdAt: number;
  /** To the hour. */
  readonly seenAt: number;
}

/** Bytes of entropy of a token, as of the access token. */
const TOKEN_BYTES = 32;
const TOKEN = /^[0-9a-f]{64}$/;
/** A device that was not used for this long is signed out, s. */
const UNUSED_S = 90 * 86_400;
/** How exactly the last use is kept, s: each call would otherwise write to the database. */
const SEEN_EVERY_S = 3600;
/** Devices kept: a household has fewer. The one that was not used for longest makes room. */
const MAX_DEVICES = 100;

/** The devices. */
export class Devices {
  readonly #store: Store;
  readonly #clock: Clock;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Signs a device in; null when the account was removed or got another password meanwhile. The token is returned only here. */
  async add(account: VerifiedAccount, name: string): Promise<{ readonly id: number; readonly token: string } | null> {
    const token = toHex(crypto.getRandomValues(new Uint8Array(TOKEN_BYTES)));
    const token_hash = await hashOf(token);
    const now = this.#nowS();
    const db = await this.#store.open();
    return await db.transaction().execute(async (trx) => {
      const row = await trx.selectFrom("accounts").select("password").where("id", "=", account.id).executeTakeFirst();
      if (row?.password !== account.record) return null;
      const device = { account_id: account.id, login: account.email, name, token_hash, created_at: now, seen_at: now };
      const { id } = await trx.insertInto("devices").values(device).returning("id").executeTakeFirstOrThrow();
      const kept = trx.selectFrom("devices").select("id").orderBy("seen_at", "desc").orderBy("id", "desc")
        .limit(MAX_DEVICES);
      await trx.deleteFrom("devices").where((eb) =>
        eb.or([eb("seen_at", "<", now - UNUSED_S), eb("id", "not in", kept)])
      ).execute();
      return { id, token };
    });
  }

  /** Whether `token` is that of a device that is signed in. */
  async holds(token: string): Promise<boolean> {
    if (!TOKEN.test(token)) return false;
    const db = await this.#store.open();
    const now = this.#nowS();
    const row = await db.selectFrom("devices").select(["id", "seen_at"]).where("token_hash", "=", await hashOf(token))
      .where("seen_at", ">=", now - UNUSED_S).executeTakeFirst();
    if (row === undefined) return false;
    if (row.seen_at + SEEN_EVERY_S <= now) {
      await db.updateTable("devices").set({ seen_at: now }).where("id", "=", row.id).execute();
    }
    return true;
  }

  /** All that are signed in, the one that was used last first. */
  async list(): Promise<Device[]> {
    const db = await this.#store.open();
    const rows = await db.selectFrom("devices").selectAll().where("seen_at", ">=", this.#nowS() - UNUSED_S)
      .orderBy("seen_at", "desc").orderBy("id", "desc").execute();
    return rows.map(({ id, login, name, created_at: createdAt, seen_at: seenAt }) => {
      return { id, login, name, createdAt, seenAt };
    });
  }

  /** Signs a device out. Rejects with `not_found`. */
  async remove(id: number): Promise<void> {
    const db = await this.#store.open();
    const { numDeletedRows } = await db.deleteFrom("devices").where("id", "=", id).executeTakeFirst();
    if (numDeletedRows === 0n) throw new MillraceError("not_found", `there is no device ${id}`);
  }

  #nowS(): number {
    return Math.floor(this.#clock.now() / 1000);
  }
}

/** The form in which a token is stored: who reads the database cannot use it. */
async function hashOf(token: string): Promise<string> {
  return toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(token))));
}
