/** What keeps a session from playing, or from playing as it should. */
import { trackerTrouble } from "../discovery/types.ts";
import type { ErrorCode } from "../errors.ts";
import type { LiveStatus } from "../live/swarm/live-source.ts";
import type { Presentation } from "../media/model/types.ts";
import type { SwarmStatus } from "../swarm/types.ts";

/** A problem in words; `code` says which kind, for pages in other languages. */
export interface Problem {
  readonly message: string;
  readonly code: ErrorCode;
}

/** Most warnings at once: a file of 256 tracks has one for each. */
const MAX_WARNINGS = 8;

/** What the swarm reports: its trackers, or what `otherwise` stands for; null: nothing. */
export function swarmProblem(
  { message, sources = [] }: Pick<SwarmStatus | LiveStatus, "message" | "sources">,
  otherwise: ErrorCode,
): Problem | null {
  return message === null ? null : { message, code: message === trackerTrouble(sources) ? "tracker" : otherwise };
}

/** What is wrong with a file that plays: first the faults met while reading, then those known when it was opened. */
export function fileProblem(presentation: Presentation | null): Problem | null {
  const { faults, warnings } = presentation ?? {};
  const all = [faults?.warning ?? null, ...warnings ?? []].filter((text) => text !== null);
  return all.length === 0 ? null : { message: all.slice(0, MAX_WARNINGS).join("; "), code: "corrupt" };
}
