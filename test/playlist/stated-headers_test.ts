import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { readPlayerAddress } from "../../src/content/analysis/player-address.ts";
import { ItemChecks } from "../../src/playlist/checks.ts";
import { addressWithHeaders } from "../../src/playlist/stated-headers.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { withLists } from "./external-support.ts";

test("addressWithHeaders() adds what an entry states in any of the usual ways", () => {
  const vlc = { "user-agent": "VLC/3 x" };
  const table: [string, Record<string, string>, string[], Record<string, string>][] = [
    ["http://h/a", {}, [], {}],
    ["http://h/a|User-Agent=VLC%2F3%20x", {}, [], vlc],
    ["http://h/a", { "http-user-agent": "VLC/3 x" }, [], vlc],
    ["http://h/a", { "user-agent": "VLC/3 x" }, [], vlc],
    ["http://h/a", {}, ["#EXTVLCOPT:http-user-agent=VLC/3 x", "#EXTVLCOPT:http-referrer=http://r/?a=1&b"], {
      ...vlc,
      referer: "http://r/?a=1&b",
    }],
    ["http://h/a", {}, ["#KODIPROP:inputstream.adaptive.stream_headers=User-Agent=VLC%2F3%20x&Origin=http://o"], {
      ...vlc,
      origin: "http://o",
    }],
    ["http://h/a", {}, ["#EXTVLCOPT:network-caching=1000", "#KODIPROP:inputstream=inputstream.adaptive"], {}],
    ["http://h/a|User-Agent=mine", { "http-user-agent": "VLC/3 x", "http-referrer": "http://r/" }, [], {
      "user-agent": "mine",
      referer: "http://r/",
    }],
  ];
  for (const [url, attributes, directives, headers] of table) {
    const address = addressWithHeaders(url, { attributes, directives });
    assertEquals(readPlayerAddress(address), { url: "http://h/a", headers }, address);
  }
});

test("ItemChecks.sweep() opens addresses with what their list states", async () => {
  const clock = new FakeClock();
  await withLists(clock, async ({ lists, store }) => {
    const text =
      "#EXTM3U\n#EXTINF:-1,A\n#EXTVLCOPT:http-user-agent=VLC/3\nhttp://h/a.m3u8\n#EXTINF:-1,B\nhttp://h/b.m3u8\n";
    await lists.tasks.ended(await lists.import(await lists.keep(new Blob([text]).stream()), "", true));
    const asked: (string | null)[] = [];
    const log = { log() {}, child: () => log };
    const probe = ({ url }: { readonly url: string | null }) => {
      asked.push(url);
      return Promise.resolve({ state: "alive", peers: null, message: "" } as const);
    };
    const checks = new ItemChecks({ store, clock, log, tasks: lists.tasks, probe });
    await lists.tasks.ended(checks.sweep({}));
    assertEquals(asked, ["http://h/a.m3u8|User-Agent=VLC%2F3", "http://h/b.m3u8"]);
  });
});
