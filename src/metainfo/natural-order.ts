/** The order in which people expect files: "Episode 2" before "Episode 10". */

const COLLATOR = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/**
 * Compares names so that runs of digits count as numbers and case doesn't matter; ties are broken by code units, so
 * that the order is total. For `Array.prototype.sort`.
 */
export function compareNatural(a: string, b: string): number {
  return COLLATOR.compare(a, b) || (a < b ? -1 : a > b ? 1 : 0);
}
