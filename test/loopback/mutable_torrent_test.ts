import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { toHex } from "../../src/bytes/hex.ts";
import { seedFiles, serveEngine } from "../support/engine.ts";
import { startMutableItems } from "../support/mutable-items.ts";
import { noise } from "../support/random.ts";
import { until } from "../support/until.ts";

test("the magnet of a mutable torrent plays the torrent that its key names now (BEP 46)", async () => {
  const items = await startMutableItems();
  const film = noise(50_000, 3);
  const seeded = await seedFiles([{ path: "film.mp4", bytes: film }]);
  const player = await serveEngine({ dht: true, dhtBootstrap: [items.node], startTimeoutMs: 60_000 });
  try {
    await items.put({ ih: new Uint8Array(20).fill(1) }, 1);
    await items.put({ ih: seeded.metainfo.infohash }, 2);
    const magnet = `magnet:?xs=urn:btpk:${toHex(items.publicKey)}&x.pe=${seeded.peer}`;
    // On a busy machine the search takes longer than the method may; it goes on meanwhile.
    let infohash = "";
    await until("the torrent is found", async () => {
      const query = `method=get_media_files&magnet=${encodeURIComponent(magnet)}`;
      infohash = (await (await fetch(`${player.url}/server/api?${query}`)).json()).result?.infohash ?? "";
      return infohash !== "";
    }, 60_000);
    assertEquals(infohash, seeded.metainfo.infohashHex);
    const played = await fetch(`${player.url}/engine/getfile?magnet=${encodeURIComponent(magnet)}`);
    assertEquals(new Uint8Array(await played.arrayBuffer()), film);
    const refused = await fetch(`${player.url}/engine/getfile?disable_p2p=1&magnet=${encodeURIComponent(magnet)}`);
    assertEquals([refused.status, (await refused.text()).includes("disable_p2p")], [404, true]);
  } finally {
    await player.close();
    await seeded.close();
    await items.close();
  }
});
