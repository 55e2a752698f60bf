/** Files of torrents that are handed to a player program. */
import { chmod, readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { seedFiles, serveEngine, temporaryDirectory } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";

test("open_in_player gives a program no playlist that is named like a film", async () => {
  const home = await temporaryDirectory();
  const seeder = await seedFiles([
    { path: "a film.mkv", bytes: new TextEncoder().encode("#EXTM3U\nhttp://192.168.1.1/secret\n") },
    { path: "film.mp4", bytes: clip("mp4-end.mp4") },
  ], { name: "films" });
  // It notes that it was started, and ends.
  const program = `${home.path}/mpv`;
  await writeFile(program, `#!/bin/sh\necho started >> '${home.path}/log'\n`);
  await chmod(program, 0o755);
  const served = await serveEngine({ playerPrograms: [program], playerDiscovery: false });
  try {
    served.engine.swarms.acquire({ metainfo: seeder.metainfo, magnet: parseMagnet(seeder.magnet) });
    const open = async (index: number) => {
      const params = { player_id: "program:mpv", infohash: seeder.metainfo.infohashHex, _idx: `${index}` };
      const query = new URLSearchParams({ method: "open_in_player", ...params });
      return (await (await fetch(`${served.url}/server/api?${query}`)).json()).error;
    };
    const starts = () => readFile(`${home.path}/log`, "utf8").catch(() => "");
    const { code, message } = await open(0);
    assertEquals(code, 3);
    assertMatch(message, /^a film\.mkv is no film or sound .*playlist/);
    assertEquals(await starts(), "");
    // This one is handed over.
    assertMatch((await open(1)).message, /mpv/);
    assertEquals(await starts(), "started\n");
  } finally {
    await served.close();
    await seeder.close();
    await home.remove();
  }
});
