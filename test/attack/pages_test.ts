/** What pages that the user merely visits send, as raw requests to the real program: see test/browser for a real browser. */
import { test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import { parseTransportFile } from "../../src/metainfo/transport-file.ts";
import { clip } from "../support/fixtures.ts";
import { assertHarmless, type Target, withTarget } from "./support/target.ts";

const TORRENT = new Uint8Array(clip("single.torrent"));

const FOREIGN: readonly Readonly<Record<string, string>>[] = [
  { origin: "https://evil.example", "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors" },
  { origin: "null", "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors" },
  { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image" },
  { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "video", range: "bytes=0-" },
  { "sec-fetch-site": "same-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" },
  { referer: "http://evil.example/", "user-agent": "Mozilla/5.0" },
];

/** A session of a stream that the user's program starts; nobody has the stream, which is enough to control it. */
async function userSession({ url }: Target): Promise<Record<string, string>> {
  const answer = await fetch(`${url}/engine/manifest.m3u8?format=json&use_api_events=1`, {
    method: "POST",
    body: TORRENT,
  });
  const { response, error } = await answer.json();
  assertEquals(error, null);
  return response;
}

const isRunning = async ({ stat_url }: Record<string, string>) =>
  (await (await fetch(stat_url!)).json()).error === null;

test("pages start, read and stop nothing, one or a hundred of them, and find nothing out", async () => {
  const { infohashHex } = await parseTransportFile(TORRENT);
  await withTarget(async (target) => {
    const user = await userSession(target);
    const api = (method: string, more = "") => `${target.url}/server/api?method=${method}&${more}`;
    const paths = (infohash: string) => [
      `${target.url}/engine/getstream?infohash=${infohash}`,
      `${target.url}/engine/manifest.m3u8?infohash=${infohash}&force_session_restart=1`,
      `${target.url}/engine/getfile?format=json&infohash=${infohash}`,
      `${target.url}/engine/c/${infohash}/0.ts`,
      `${target.url}/engine/stat/${infohash}/${user.playback_session_id}`,
      `${target.url}/engine/event/${infohash}/${user.playback_session_id}`,
      `${target.url}/engine/cmd/${infohash}/${user.playback_session_id}?method=stop`,
      `${target.url}/engine/m/${infohash}/${user.playback_session_id}.m3u8`,
      `${target.url}/engine/playlist.m3u`,
    ];
    const calls = (infohash: string) => [
      api("get_media_files", `infohash=${infohash}`),
      api("get_content_id", `infohash=${infohash}`),
      api("analyze_content", `query=${infohash}`),
      api("get_channel_icon", "id=1"),
      api("get_available_players"),
    ];
    const ask = async (url: string, headers: Record<string, string>) => {
      const begunMs = performance.now();
      const answer = await fetch(url, { headers, redirect: "manual" });
      const text = await answer.text();
      const readers = [...answer.headers.keys()].filter((name) => name.startsWith("access-control-"));
      return { told: JSON.stringify([answer.status, text, readers]), ms: performance.now() - begunMs };
    };
    await assertHarmless(target, async () => {
      for (const headers of FOREIGN) {
        // One after the other: with more than a few at once some would be refused as too many.
        const told = async (infohash: string) => {
          const answers = [];
          for (const url of [...paths(infohash), ...calls(infohash)]) answers.push(await ask(url, headers));
          return answers;
        };
        const [known, unknown] = [await told(infohashHex), await told("1".repeat(40))];
        for (const [i, { told, ms }] of known.entries()) {
          assertEquals(told, unknown[i]!.told);
          assert(/^\[403,.*,\[\]\]$|"code\\":4.*,\[\]\]$/.test(told), told);
          // To look for a stream takes seconds.
          assertLess(ms, 3000);
        }
      }
      // As many at once as a browser opens to all names of this machine together.
      for (let round = 0; round < 4; round++) {
        const flood = Array.from({ length: 64 }, (_, i) => paths((64 * round + i).toString(16).padStart(40, "0"))[0]!);
        for (const { told } of await Promise.all(flood.map((url) => ask(url, FOREIGN[2]!)))) {
          assert(told.startsWith("[403"));
        }
      }
    });
    assert(await isRunning(user));
  });
});

test("an allowed page does not affect the user's session, and can end only its own", async () => {
  await withTarget(async (target) => {
    const user = await userSession(target);
    const headers = { origin: "https://tv.example", "sec-fetch-site": "cross-site" };
    const start = async (more: string) => {
      const url = `${target.url}/engine/manifest.m3u8?format=json&${more}`;
      return (await (await fetch(url, { method: "POST", body: TORRENT, headers })).json()).response;
    };
    for (const more of ["", "force_session_restart=1", "pid=vlc&force_session_restart=1"]) {
      const own = await start(more);
      assert(own.playback_session_id !== user.playback_session_id);
      const stopped = await fetch(`${own.command_url}?method=stop`, { headers });
      assertEquals(await stopped.json(), { response: "ok", error: null });
      const refused = await fetch(`${user.command_url}?method=stop`, { headers });
      assertEquals((await refused.json()).error, "unknown playback session id");
      assert(await isRunning(user));
    }
    const stopped = await fetch(`${user.command_url}?method=stop`);
    assertEquals(await stopped.json(), { response: "ok", error: null });
  }, ["--allow-origin", "https://tv.example"]);
});
