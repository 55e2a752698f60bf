import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { renderLivePlaylist } from "../../../src/media/hls/live-playlist.ts";

const segment = (n: number, durationMs: number, discontinuity = false) => ({
  n,
  durationMs,
  startMs: Date.UTC(2026, 0, 1) + n * 2000,
  discontinuity,
});

test("renderLivePlaylist() writes a window that slides (RFC 8216, 6.2.2)", () => {
  const text = renderLivePlaylist({
    targetDurationS: 2,
    segments: [segment(41, 2000), segment(42, 1960, true)],
    droppedDiscontinuities: 3,
    ended: false,
    startS: 1.5,
  }, (n) => `http://h/c/${n}.ts`);
  assertEquals(text.split("\n"), [
    "#EXTM3U",
    "#EXT-X-VERSION:3",
    "#EXT-X-TARGETDURATION:2",
    "#EXT-X-MEDIA-SEQUENCE:41",
    "#EXT-X-DISCONTINUITY-SEQUENCE:3",
    "#EXT-X-START:TIME-OFFSET=1.500",
    "#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:01:22.000Z",
    "#EXTINF:2.000000,",
    "http://h/c/41.ts",
    "#EXT-X-DISCONTINUITY",
    "#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:01:24.000Z",
    "#EXTINF:1.960000,",
    "http://h/c/42.ts",
    "",
  ]);
});

test("renderLivePlaylist() of a broadcast that is over ends the list, and says nothing that is not needed", () => {
  const playlist = { targetDurationS: 3, segments: [], droppedDiscontinuities: 0, ended: true, startS: null };
  assertEquals(
    renderLivePlaylist(playlist, String),
    [
      "#EXTM3U",
      "#EXT-X-VERSION:3",
      "#EXT-X-TARGETDURATION:3",
      "#EXT-X-MEDIA-SEQUENCE:0",
      "#EXT-X-ENDLIST",
      "",
    ].join("\n"),
  );
});
