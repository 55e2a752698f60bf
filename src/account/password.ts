/**
 * Passwords as they are stored: scrypt (RFC 7914) in the PHC string format. Its memory use makes guessing from a stolen
 * database expensive; the library works in slices of a few milliseconds, so that streams continue during a check.
 */
import { trimEndOf } from "../bytes/trim.ts";
import { scryptAsync } from "@noble/hashes/scrypt.js";
import { MillraceError } from "../errors.ts";

/** Cost of one hash: N = 2^logN blocks of r · 128 bytes, p times. 16 MiB and some 0.4 s of one core. */
interface Cost {
  readonly logN: number;
  readonly r: number;
  readonly p: number;
}

/** OWASP's recommendation of 2024 for the memory of a small machine. */
const COST: Cost = { logN: 14, r: 8, p: 5 };
/** More expensive records are not checked: they would take gigabytes. */
const MAX_COST: Cost = { logN: 17, r: 16, p: 16 };
const SALT_BYTES = 16;
const HASH_BYTES = 32;
/** Longest turn of the event loop, ms. */
const SLICE_MS = 5;
/** Shortest password for a new account, characters (NIST SP 800-63B section 3.1.1.2). */
const MIN_PASSWORD_CHARS = 8;
/** Longest password, characters. */
const MAX_PASSWORD_CHARS = 1024;

const RECORD = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{22})\$([A-Za-z0-9+/]{43})$/;

/** `password` as a record for `verifyPassword`. Throws `invalid_argument` when it is too short or too long. */
export async function hashPassword(password: string): Promise<string> {
  const { length } = [...password];
  if (length < MIN_PASSWORD_CHARS || length > MAX_PASSWORD_CHARS) {
    throw new MillraceError(
      "invalid_argument",
      `a password must have ${MIN_PASSWORD_CHARS} to ${MAX_PASSWORD_CHARS} characters`,
    );
  }
  const salt = crypto.getRandomValues(new Uint8Array(SALT_BYTES));
  const hash = await derive(password, salt, COST);
  return `$scrypt$ln=${COST.logN},r=${COST.r},p=${COST.p}$${toBase64(salt)}$${toBase64(hash)}`;
}

/**
 * Returns whether `password` matches `record`. Without a record the same work is done for nothing, so that the time does
 * not reveal whether the account exists. Throws `corrupt` for an invalid record.
 */
export async function verifyPassword(record: string | null, password: string): Promise<boolean> {
  const match = record === null ? null : RECORD.exec(record);
  if (record !== null && match === null) throw new MillraceError("corrupt", "a stored password is damaged");
  const cost = match === null ? COST : { logN: Number(match[1]), r: Number(match[2]), p: Number(match[3]) };
  if (cost.logN < 1 || cost.logN > MAX_COST.logN || cost.r > MAX_COST.r || cost.p > MAX_COST.p) {
    throw new MillraceError("corrupt", "a stored password is damaged");
  }
  const salt = match === null ? new Uint8Array(SALT_BYTES) : fromBase64(match[4]!);
  const wanted = match === null ? new Uint8Array(HASH_BYTES) : fromBase64(match[5]!);
  const hash = await derive(password.slice(0, 2 * MAX_PASSWORD_CHARS), salt, cost);
  let difference = match === null ? 1 : 0;
  for (let i = 0; i < HASH_BYTES; i++) difference |= hash[i]! ^ wanted[i]!;
  return difference === 0;
}

/** NFC: keyboards enter the same letter in different ways (RFC 8265 section 4.2). */
function derive(password: string, salt: Uint8Array, { logN, r, p }: Cost): Promise<Uint8Array> {
  const bytes = new TextEncoder().encode(password.normalize("NFC"));
  return scryptAsync(bytes, salt, { N: 2 ** logN, r, p, dkLen: HASH_BYTES, asyncTick: SLICE_MS });
}

function toBase64(bytes: Uint8Array): string {
  return trimEndOf(btoa(String.fromCharCode(...bytes)), "=");
}

function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}
