/** A broadcast of two sounds with `renditions=1`: the multivariant playlist of both formats, and all that it leads to. */
import { after, before, test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { twoSounds } from "../playback/live-support.ts";
import { type OnAir, onAir } from "../support/live.ts";

let air: OnAir;
before(async () => {
  air = await onAir(await twoSounds());
});
after(async () => {
  await air?.close();
});

const text = async (url: string) => await (await fetch(url)).text();
const linksIn = (list: string) => list.split("\n").filter((line) => line.startsWith("http"));

async function multivariant(more: Record<string, string>): Promise<{ url: string; list: string }> {
  const query = new URLSearchParams({ magnet: air.magnet, renditions: "1", format: "json", pid: "r", ...more });
  const { response, error } = await (await fetch(`${air.viewer.url}/engine/manifest.m3u8?${query}`)).json();
  assertEquals(error, null);
  return { url: response.playback_url, list: await text(response.playback_url) };
}

for (const [format, extension] of [["ts", "ts"], ["fmp4", "m4s"]] as const) {
  test(`renditions=1 of a broadcast in ${format} lists its sounds, each in segments of its own`, async () => {
    const { url, list } = await multivariant({ playlist_output_format_live: format, preferred_audio_language: "de" });
    assert(url.endsWith("renditions=1"), url);
    const sounds = list.split("\n").filter((line) => line.startsWith("#EXT-X-MEDIA"));
    assertEquals(sounds.map((line) => /NAME="([^"]+)",LANGUAGE="([^"]+)"/.exec(line)!.slice(1)), [
      ["German", "de"],
      ["English", "en"],
    ]);
    assertMatch(
      list,
      /#EXT-X-STREAM-INF:BANDWIDTH=\d+,AVERAGE-BANDWIDTH=\d+,CODECS="avc1\.[0-9A-F]{6},ac-3",RES.*AUDIO=/,
    );
    const lists = [...sounds.map((line) => /URI="([^"]+)"/.exec(line)![1]!), linksIn(list)[0]!];
    for (const one of lists) {
      const segments = await text(one);
      const names = linksIn(segments).map((link) => link.slice(link.lastIndexOf("/") + 1));
      assert(
        names.length > 1 && names.every((name) => new RegExp(`^(v|a\\d+)-\\d+\\.${extension}$`).test(name)),
        segments,
      );
      const first = await fetch(linksIn(segments)[0]!);
      assertEquals([first.status, first.headers.get("content-type")], [
        200,
        format === "ts" ? "video/mp2t" : "video/mp4",
      ]);
      const bytes = new Uint8Array(await first.arrayBuffer());
      assert(bytes.length > 1000 && (format === "fmp4" || bytes[0] === 0x47));
      const init = /#EXT-X-MAP:URI="([^"]+)"/.exec(segments)?.[1];
      assertEquals(init !== undefined, format === "fmp4");
      if (init !== undefined) {
        assertEquals((await (await fetch(init)).bytes()).subarray(4, 8), new TextEncoder().encode("ftyp"));
      }
      for (const wrong of ["x-1.ts", `v-0.${extension}`, "a1-0-init.mp4", "v-1.mp4"]) {
        const there = linksIn(segments)[0]!.replace(/[^/]*$/, wrong);
        const missing = await fetch(there);
        assertEquals(missing.status, 404, wrong);
        await missing.body?.cancel();
      }
    }
  });
}

test("a broadcast without renditions=1 has the playlist of its segments", async () => {
  const query = new URLSearchParams({ magnet: air.magnet, pid: "plain" });
  assertMatch(await text(`${air.viewer.url}/engine/manifest.m3u8?${query}`), /#EXTINF/);
});
