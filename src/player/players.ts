/** Players in reach: "Players" of section 4.4 of the HTTP API. Each kind is found by a finder of its own. */
import { MillraceError } from "../errors.ts";

/** One player, section 2.5. */
export interface Player {
  /** Unique among all players of the engine. */
  readonly id: string;
  readonly type: "proxy" | "aircast";
  /** Null for type `proxy`. */
  readonly protocol: string | null;
  readonly name: string;
  /** URL, or null. */
  readonly icon: string | null;
}

/** What a player is to play: the selectors of section 4.4 as they were given. */
export interface PlayerRequest {
  readonly content_id?: string | undefined;
  readonly infohash?: string | undefined;
  readonly url?: string | undefined;
}

/** Looks for players of one kind and starts playback in them. */
export interface PlayerFinder {
  /** Players that answer now. */
  list(): Promise<readonly Player[]>;
  /** Resolves when the player has been told to play. */
  open(player: Player, request: PlayerRequest, signal: AbortSignal): Promise<void>;
}

/** All players. */
export class Players {
  private readonly finders: readonly PlayerFinder[];

  constructor(finders: readonly PlayerFinder[]) {
    this.finders = finders;
  }

  /** Players of all kinds. */
  async list(): Promise<Player[]> {
    return (await Promise.all(this.finders.map((finder) => finder.list()))).flat();
  }

  /** Starts playback in the player with this id. Rejects with `not_found` when there is none. */
  async open(id: string, request: PlayerRequest, signal: AbortSignal): Promise<void> {
    for (const finder of this.finders) {
      const player = (await finder.list()).find((candidate) => candidate.id === id);
      if (player !== undefined) return await finder.open(player, request, signal);
    }
    throw new MillraceError("not_found", "no player with this player_id is in reach; see get_available_players");
  }
}
