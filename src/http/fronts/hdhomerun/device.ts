/** The tuner that clients see. */
import type { AccessToken } from "../../../account/access-token.ts";

/** Number of streams at once that the tuner reports: servers refuse to start more than there are tuners. */
export const TUNERS = 8;

/** A model that converts nothing: of one that does, servers offer the user qualities which this engine does not make. */
export const MODEL = "HDHR4-2US";
/** Its firmware, which is also how programs name the kind of device. */
export const FIRMWARE = "hdhomerun4_atsc";
/** When that was made, as the maker writes it. */
export const FIRMWARE_VERSION = "20240101";

/**
 * Eight hexadecimal digits by which servers recognise the tuner: the same for the same access token, and nothing can be
 * learnt about the token from them. Servers check the last digit, the check digit.
 */
export async function deviceId(token: AccessToken): Promise<string> {
  await token.refresh();
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(`hdhomerun ${token.value}`));
  const digits = [...new Uint8Array(hash).subarray(0, 7)].map((byte) => byte & 15);
  return [...digits, checkDigit(digits)].map((digit) => digit.toString(16).toUpperCase()).join("");
}

/** What makes all eight digits together 0 (libhdhomerun, `hdhomerun_discover_validate_device_id`). */
function checkDigit(digits: readonly number[]): number {
  const table = [0xa, 0x5, 0xf, 0x6, 0x7, 0xc, 0x1, 0xb, 0x9, 0x2, 0x8, 0xd, 0x4, 0x3, 0xe, 0x0];
  return digits.reduce((sum, digit, place) => sum ^ (place % 2 === 0 ? table[digit]! : digit), 0);
}
