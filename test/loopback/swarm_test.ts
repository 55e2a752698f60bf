/** Engines among themselves: sharing upload slots, reciprocating, passing on addresses. */
import { after, before, test } from "node:test";
import { assert, assertLess } from "@std/assert";
import { type ServedEngine, serveEngine } from "../support/engine.ts";
import { until } from "../support/until.ts";
import { assertSameBytes, bytesOf, MIB, type SeededNoise, seedNoise, sentBy, startSession } from "./support.ts";
import { ownMs } from "../support/held-up.ts";

let seeder: SeededNoise;
before(async () => {
  seeder = await seedNoise(2 * MIB, { pieceLengthBytes: 65_536, engine: { uploadLimitBytesPerSecond: 6 * MIB } });
});
after(() => seeder?.close());

const downloaded = (served: ServedEngine) => served.engine.swarms.list()[0]?.status().downloadedBytes ?? 0;
const uploaded = (served: ServedEngine) => served.engine.swarms.list()[0]?.status().uploadedBytes ?? 0;

test("ten players of one slow seeder all get everything, more than its upload slots at once", async () => {
  const players = await Promise.all(Array.from({ length: 10 }, () => serveEngine({ pex: false })));
  try {
    const tookMs = await ownMs(() =>
      Promise.all(players.map(async (player) => {
        const started = await startSession(player, "getfile", { magnet: seeder.magnet });
        assertSameBytes(await bytesOf(started.playback_url), seeder.data);
      }))
    );
    // 20 MiB at 6 MiB/s; a waiting peer gets a slot as soon as one is free, not at the next round of 10 s.
    assertLess(tookMs, 8_000);
  } finally {
    await Promise.all(players.map((player) => player.close()));
  }
});

test("players that know each other exchange pieces, so that the seeder sends each only once", async () => {
  // So slow that the first has not everything before the others are there.
  const slow = await seedNoise(2 * MIB, { pieceLengthBytes: 65_536, engine: { uploadLimitBytesPerSecond: 2 * MIB } });
  const players = await Promise.all(Array.from({ length: 4 }, () => serveEngine()));
  try {
    const known = players.map((player) => `&x.pe=${player.peer}`).join("");
    const play = async (player: ServedEngine) => {
      const started = await startSession(player, "getfile", { magnet: slow.magnet + known });
      assertSameBytes(await bytesOf(started.playback_url), slow.data);
    };
    const [first, ...others] = players;
    const playing = [play(first!)];
    // In step with each other they would have nothing that another lacks.
    await until("the first has a quarter", () => downloaded(first!) >= MIB / 2);
    await Promise.all([...playing, ...others.map(play)]);
    const given = players.reduce((sum, player) => sum + uploaded(player), 0);
    assert(given > 0, "players give back");
    assertLess(sentBy(slow), 4 * 2 * MIB, "the seeder is relieved");
  } finally {
    await Promise.all([slow, ...players].map((engine) => engine.close()));
  }
});

test("a player that has everything is a sufficient seeder when the original one is gone", async () => {
  const source = await seedNoise(MIB, { seed: 21 });
  const first = await serveEngine(), second = await serveEngine({ startTimeoutMs: 10_000 });
  let gone = false;
  try {
    const started = await startSession(first, "getfile", { magnet: source.magnet });
    assertSameBytes(await bytesOf(started.playback_url), source.data);
    await until("everything is verified", () => first.engine.swarms.list()[0]!.status().downloadedBytes >= MIB);
    await source.close();
    gone = true;
    const magnet = `magnet:?xt=urn:btih:${source.metainfo.infohashHex}&x.pe=${first.peer}`;
    const other = await startSession(second, "getfile", { magnet });
    assertSameBytes(await bytesOf(other.playback_url), source.data);
  } finally {
    if (!gone) await source.close();
    await Promise.all([first.close(), second.close()]);
  }
});
