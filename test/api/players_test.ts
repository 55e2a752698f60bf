import { test } from "node:test";
import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { type Player, type PlayerFinder, type PlayerRequest, Players } from "../../src/player/players.ts";
import { serveEngine } from "../support/engine.ts";
import { withEngine } from "./support.ts";

const ID = "0123456789abcdef0123456789abcdef01234567";

test("open_in_player answers code 5 for a player that is not in reach, over HTTP", async () => {
  const served = await serveEngine();
  try {
    const call = async (query: string) => {
      const response = await fetch(`${served.url}/server/api?method=open_in_player&${query}`);
      const { result, error } = await response.json();
      assertEquals([response.status, result], [200, null], query);
      return error;
    };
    const table: [string, number, RegExp][] = [
      [`player_id=tv&infohash=${ID}`, 5, /player_id.*get_available_players/],
      [`player_id=tv&content_id=${ID}`, 5, /player_id/],
      [`player_id=tv&url=http://example.org/x.torrent`, 5, /player_id/],
      [`infohash=${ID}`, 2, /player_id/],
      [`player_id=&infohash=${ID}`, 3, /player_id/],
      ["player_id=tv", 2, /selector/],
      ["player_id=tv&infohash=xyz", 3, /infohash/],
      ["player_id=tv&content_id=xyz", 3, /content_id/],
    ];
    for (const [query, code, says] of table) {
      const error = await call(query);
      assertEquals(error.code, code, `${query}: ${error.message}`);
      assertMatch(error.message, says);
    }
  } finally {
    await served.close();
  }
});

test("open_in_player needs no token, yet no page of another origin starts a player with it", async () => {
  await withEngine(async ({ call }) => {
    const params = { player_id: "tv", infohash: ID };
    assertEquals((await call("open_in_player", params)).error?.code, 5);
    for (const headers of [{ origin: "https://page.example" }, { "sec-fetch-site": "cross-site" }]) {
      assertEquals((await call("open_in_player", params, { headers })).error?.code, 4, JSON.stringify(headers));
    }
  });
});

/** Players that remember what they were told. */
class Shelf implements PlayerFinder {
  readonly told: [string, PlayerRequest][] = [];
  private readonly players: readonly Player[];

  constructor(...names: string[]) {
    this.players = names.map((name) => ({ id: name, type: "proxy", protocol: null, name, icon: null }));
  }

  list() {
    return Promise.resolve(this.players);
  }

  open(player: Player, request: PlayerRequest) {
    this.told.push([player.id, request]);
    return Promise.resolve();
  }
}

test("Players lists the players of all finders and hands a stream to the one it is for", async () => {
  const [one, two] = [new Shelf("a", "b"), new Shelf("c")];
  const players = new Players([one, two]);
  assertEquals((await players.list()).map(({ id }) => id), ["a", "b", "c"]);
  const { signal } = new AbortController();
  await players.open("c", { infohash: ID }, signal);
  assertEquals([one.told, two.told], [[], [["c", { infohash: ID }]]]);
  const error = await assertRejects(() => players.open("d", { infohash: ID }, signal), MillraceError);
  assertEquals((error as MillraceError).code, "not_found");
  assertEquals(await new Players([]).list(), []);
});
