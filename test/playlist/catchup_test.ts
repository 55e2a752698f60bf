import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { catchupAddress } from "../../src/playlist/catchup.ts";

/** 2026-11-27 20:05:00 UTC, an hour, watched two hours later. */
const TIME = { startS: 1_795_809_900, durationS: 3600, nowS: 1_795_817_100 };

test("catchupAddress() fills in what each kind of catch-up asks for", () => {
  const table: [string, Record<string, string>, string | null][] = [
    ["http://h/a.m3u8", {}, null],
    ["http://h/a.m3u8", { catchup: "default" }, null],
    [
      "http://h/a.m3u8",
      { catchup: "default", "catchup-source": "http://h/rec?from={utc}&to=${end}&len={duration:60}&back={offset:60}" },
      "http://h/rec?from=1795809900&to=1795813500&len=60&back=120",
    ],
    [
      "http://h/x/a.m3u8?k=1",
      { catchup: "append", "catchup-source": "&utc={utc}&day={Y}-{m}-{d}T{H}:{M}:{S}" },
      "http://h/x/a.m3u8?k=1&utc=1795809900&day=2026-11-27T20:05:00",
    ],
    ["http://h/a.m3u8", { catchup: "shift" }, "http://h/a.m3u8?utc=1795809900&lutc=1795817100"],
    ["http://h/a?k=1|Referer=x", { catchup: "shift" }, "http://h/a?k=1&utc=1795809900&lutc=1795817100|Referer=x"],
    ["http://h/c/index.m3u8?t=1", { catchup: "flussonic" }, "http://h/c/archive-1795809900-3600.m3u8?t=1"],
    ["http://h/c/video.m3u8", { catchup: "fs" }, "http://h/c/video-1795809900-3600.m3u8"],
    ["http://h/c/mpegts?t=1", { "catchup-type": "flussonic" }, "http://h/c/timeshift_abs-1795809900.ts?t=1"],
    ["http://h/live/u/p/12.ts", { catchup: "xc" }, "http://h/timeshift/u/p/60/2026-11-27:20-05/12.ts"],
    ["http://h/u/p/12", { catchup: "xc" }, "http://h/timeshift/u/p/60/2026-11-27:20-05/12.ts"],
    ["http://h/other", { catchup: "xc" }, null],
    ["http://h/d/a.m3u8", { "catchup-source": "rec-{utc}.m3u8" }, "http://h/d/rec-1795809900.m3u8"],
    ["http://h/d/a.m3u8", { "catchup-source": "{unknown}/{utc:0}" }, "http://h/d/{unknown}/1795809900"],
  ];
  for (const [address, attributes, wanted] of table) {
    assertEquals(catchupAddress(address, attributes, TIME), wanted, JSON.stringify(attributes));
  }
});

test("catchupAddress() makes no address of what is too long ago, or too long", () => {
  const shift = { catchup: "shift", "catchup-days": "1" };
  assertEquals(catchupAddress("http://h/a", shift, { ...TIME, nowS: TIME.startS + 86_401 }), null);
  assertEquals(catchupAddress("http://h/a", { catchup: "append", "catchup-source": "x".repeat(9000) }, TIME), null);
});
