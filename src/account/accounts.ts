/** Local accounts: users who can sign in by email and password. Created and removed only from the command line. */
import type { Transaction } from "kysely";
import type { Schema } from "../database/schema.ts";
import type { Store } from "../database/store.ts";
import { hasCode, MillraceError } from "../errors.ts";
import type { Clock } from "../ports.ts";
import { hashPassword, verifyPassword } from "./password.ts";

/** One account, without its password, which stays in the database. */
export interface Account {
  readonly id: number;
  /** Lower-case. */
  readonly email: string;
  /** Unix seconds. */
  readonly createdAt: number;
  /** When the password was last set, Unix seconds. */
  readonly updatedAt: number;
}

/** An account whose password was correct. */
export interface VerifiedAccount {
  readonly id: number;
  readonly email: string;
  /** The stored password that was checked, to detect later changes. */
  readonly record: string;
}

/** Longest address, characters (RFC 5321 section 4.5.3.1.3 less the brackets). */
const MAX_EMAIL_CHARS = 254;

/** The form in which addresses are stored and compared. */
export function normalEmail(email: string): string {
  return email.trim().normalize("NFC").toLowerCase();
}

/** Local accounts in the database. Passwords are stored only as scrypt hashes. */
export class Accounts {
  readonly #store: Store;
  readonly #clock: Clock;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Adds an account. Rejects with `conflict` when it exists, `invalid_argument` for a bad address or password. */
  async add(email: string, password: string): Promise<void> {
    const name = requireEmail(email);
    const record = await hashPassword(password);
    const db = await this.#store.open();
    const now = this.#now();
    try {
      await db.insertInto("accounts").values({ email: name, password: record, created_at: now, updated_at: now })
        .execute();
    } catch (error) {
      if (!hasCode(error, "conflict")) throw error;
      throw new MillraceError("conflict", `account ${name} already exists; see user passwd`);
    }
  }

  /** Sets a new password, which ends all sign-ins of the account and signs its devices out. Rejects with `not_found` or `invalid_argument`. */
  async changePassword(email: string, password: string): Promise<void> {
    const name = requireEmail(email);
    const record = await hashPassword(password);
    const db = await this.#store.open();
    await db.transaction().execute(async (trx) => {
      const account = await trx.selectFrom("accounts").select("id").where("email", "=", name).executeTakeFirst();
      if (account === undefined) throw noAccount(name);
      await trx.updateTable("accounts").set({ password: record, updated_at: this.#now() })
        .where("id", "=", account.id).execute();
      await signOut(trx, account.id);
    });
  }

  /** Removes an account, ends its sign-ins and signs its devices out. Rejects with `not_found`. */
  async remove(email: string): Promise<void> {
    const name = normalEmail(email);
    const db = await this.#store.open();
    await db.transaction().execute(async (trx) => {
      const account = await trx.selectFrom("accounts").select("id").where("email", "=", name).executeTakeFirst();
      if (account === undefined) throw noAccount(name);
      await signOut(trx, account.id);
      await trx.deleteFrom("accounts").where("id", "=", account.id).execute();
    });
  }

  /** All accounts, ordered by address. */
  async list(): Promise<Account[]> {
    const db = await this.#store.open();
    const rows = await db.selectFrom("accounts").select(["id", "email", "created_at", "updated_at"]).orderBy("email")
      .execute();
    return rows.map((row) => ({
      id: row.id,
      email: row.email,
      createdAt: row.created_at,
      updatedAt: row.updated_at,
    }));
  }

  /** The account with this address and password, or null; an unknown address takes the same time. */
  async verify(email: string, password: string): Promise<VerifiedAccount | null> {
    const db = await this.#store.open();
    const row = await db.selectFrom("accounts").select(["id", "email", "password"])
      .where("email", "=", normalEmail(email)).executeTakeFirst();
    const isRight = await verifyPassword(row?.password ?? null, password);
    return row === undefined || !isRight ? null : { id: row.id, email: row.email, record: row.password };
  }

  #now(): number {
    return Math.floor(this.#clock.now() / 1000);
  }
}

/** Ends the sign-ins of an account, and those of its devices. */
async function signOut(trx: Transaction<Schema>, accountId: number): Promise<void> {
  await trx.deleteFrom("sign_ins").where("account_id", "=", accountId).execute();
  await trx.deleteFrom("devices").where("account_id", "=", accountId).execute();
}

function requireEmail(email: string): string {
  const name = normalEmail(email);
  if (name.length > MAX_EMAIL_CHARS || !/^[^\s@\p{C}]+@[^\s@\p{C}]+$/u.test(name)) {
    throw new MillraceError("invalid_argument", "an email address is expected");
  }
  return name;
}

function noAccount(name: string): MillraceError {
  return new MillraceError("not_found", `there is no account ${JSON.stringify(name.slice(0, MAX_EMAIL_CHARS))}`);
}
