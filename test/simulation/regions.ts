/** Where simulated members live, and how long packets take between them: rounded from published round trips between data centres. */

/** A part of the world, as an index of `ONE_WAY_MS`. */
export type Region = 0 | 1 | 2 | 3;

/** One-way times between Europe, North America, East Asia and South America, ms. */
const ONE_WAY_MS: readonly (readonly number[])[] = [
  [12, 45, 115, 100],
  [45, 20, 80, 65],
  [115, 80, 30, 150],
  [100, 65, 150, 20],
];
/** Shares of the members that live in Europe, North America and East Asia; the rest live in South America. */
const SHARES = [0.45, 0.7, 0.9] as const;
/** What each member's own access adds, from cable to ADSL, ms one way. */
const ACCESS_MS = [3, 15] as const;

/** A region for a new member. */
export function dealRegion(random: () => number): Region {
  const card = random();
  return SHARES.filter((below) => card >= below).length as Region;
}

/** One-way time of a new connection between members of `from` and `to`, ms. */
export function oneWayMs(from: Region, to: Region, random: () => number): number {
  const access = () => ACCESS_MS[0] + (ACCESS_MS[1] - ACCESS_MS[0]) * random();
  return ONE_WAY_MS[from]![to]! + access() + access();
}
