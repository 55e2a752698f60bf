/** Which items are alive, of those that the engine has checked. */
import { call } from "./engine.ts";
import { text, timeText } from "./texts.ts";

/** What `playlist_get_checks` says of an item. Times are Unix seconds. */
export interface Check {
  readonly id: number;
  readonly state: "alive" | "silent" | "unknown";
  /** null for what comes by HTTP. */
  readonly peers: number | null;
  readonly message: string;
  readonly checked_at: number;
  /** 0: never. */
  readonly last_seen: number;
}

/** Most ids of one call. */
const MAX_IDS = 500;

/** The results about items, by id; `known` with those of `ids` renewed. Rejects with `EngineError`. */
export async function renewedChecks(
  known: ReadonlyMap<number, Check>,
  ids: readonly number[],
): Promise<ReadonlyMap<number, Check>> {
  if (ids.length === 0) return known;
  const { checks } = await call<{ checks: Check[] }>("playlist_get_checks", { ids: ids.slice(-MAX_IDS).join() });
  return new Map([...known, ...checks.map((check) => [check.id, check] as const)]);
}

/** A check in a few words. */
export function checkText({ state, peers, last_seen }: Check): string {
  if (state === "alive") return !peers ? text("alive") : text("alivePeers", peers);
  if (state === "unknown") return text("aliveUnknown");
  return last_seen === 0 ? text("silentNever") : text("silentSince", timeText(last_seen));
}
