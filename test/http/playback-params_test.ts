import { test } from "node:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import type { TranscodeAudio } from "../../src/media/model/audio-target.ts";
import {
  addTranscoding,
  parsePlaybackParams,
  transcodingOf,
  wantsSingleReader,
} from "../../src/http/playback-params.ts";
import { PLAYBACK, playbackMarkdown } from "../../src/http/playback-schema.ts";

/** Every name of the table in section 4.1, written by hand with a value and what it must become. */
const DOCUMENTED: [string, string, unknown][] = [
  ["format", "json", "json"],
  ["pid", "p1", "p1"],
  ["sid", "p2", "p2"],
  ["playlist_output_format_vod", "fmp4", "fmp4"],
  ["playlist_output_format_vod", "ts", "ts"],
  ["playlist_output_format_vod", "hls", "auto"],
  ["playlist_output_format_live", "http", "ts"],
  ["playlist_selected_indexes", "1,2, 5", [1, 2, 5]],
  ["next_file_indexes", "3", [3]],
  ["start_from", "90.5", 90.5],
  ["start_from", "1:30", 90],
  ["start_from", "1:02:03.5", 3723.5],
  ["_idx", "4", 4],
  ["quality", "2", 2],
  ["stream_id", "-1", -1],
  ["provider", "a", "a"],
  ["direct_url", "http://x/", "http://x/"],
  ["infohash", "ab", "ab"],
  ["url", "http://y/", "http://y/"],
  ["magnet", "magnet:?xt=1", "magnet:?xt=1"],
  ["mode", "m", "m"],
  ["debug_options", "d", "d"],
  ["cas", "c", "c"],
  ["preferred_audio_language", "ger,eng", "ger,eng"],
  ["product_key", "k", "k"],
  ["secondary_product_key", "k2", "k2"],
  ["content_id", "cid", "cid"],
  ["id", "cid2", "cid2"],
  ["use_api_stop", "1", true],
  ["use_api_events", "true", true],
  ["use_stop_notifications", "True", true],
  ["transcode_audio", "0", false],
  ["transcode_mp3", "false", false],
  ["transcode_ac3", "False", false],
  ["disable_p2p", "1", true],
  ["hlc", "1", true],
  ["allow_multiple_threads_reading", "1", true],
  ["stop_prev_read_thread", "1", true],
  ["proxy_vast_response", "1", true],
  ["force_session_restart", "1", true],
  ["gdpr_consent", "1", true],
  ["force_ads", "1", true],
  ["is_restarted_session", "1", true],
  ["collect_start_stats", "1", true],
];

test("parsePlaybackParams() types every parameter of the document", () => {
  for (const [name, text, value] of DOCUMENTED) {
    const params = parsePlaybackParams(new URLSearchParams([[name, text]])) as Record<string, unknown>;
    assertEquals(params[name], value, name);
  }
});

test("parsePlaybackParams() ignores unknown names and empty values", () => {
  assertEquals(parsePlaybackParams(new URLSearchParams("nonsense=1&pid=&_idx=")), {});
});

test("parsePlaybackParams() names the parameter when a value has the wrong type", () => {
  for (
    const query of [
      "_idx=x",
      "_idx=1.5",
      "_idx=99999999999999999999",
      "format=xml",
      "use_api_stop=2",
      "next_file_indexes=1,a",
      "start_from=x",
      "start_from=-1",
      "start_from=1:60",
      "start_from=1:2:3:4",
    ]
  ) {
    const error = assertThrows(() => parsePlaybackParams(new URLSearchParams(query)), MillraceError);
    assertEquals(error.code, "invalid_argument");
    assert(error.message.includes(query.split("=")[0]!), error.message);
  }
});

test("parsePlaybackParams() survives arbitrary queries", () => {
  let seed = 7;
  const random = () => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff;
  for (let round = 0; round < 2000; round++) {
    const name = DOCUMENTED[Math.floor(random() * DOCUMENTED.length)]![0];
    const value = Array.from(
      { length: Math.floor(random() * 30) },
      () => String.fromCharCode(Math.floor(random() * 300)),
    ).join("");
    try {
      parsePlaybackParams(new URLSearchParams([[name, value], [value, name]]));
    } catch (error) {
      assert(error instanceof MillraceError, String(error));
    }
  }
  assertThrows(() => parsePlaybackParams(new URLSearchParams([["pid", "x".repeat(20_000)]])), MillraceError, "pid");
});

test("parsePlaybackParams() reads values in every accepted spelling", () => {
  const table: [string, unknown][] = [
    ["use_api_stop=TRUE", true],
    ["use_api_stop=+False+", false],
    ["_idx=+-07+", -7],
    ["_idx=999999999999999", 999_999_999_999_999],
    ["next_file_indexes=1,+2,,3&next_file_indexes=4", [1, 2, 3, 4]],
    ["next_file_indexes=,", []],
    ["next_file_indexes=&next_file_indexes=5", [5]],
    ["start_from=75:30", 4530],
    ["cushion=auto", "auto"],
    ["cushion=OFF", "off"],
    ["cushion=90", 90],
    ["start_from=9999:59:59", 35_999_999],
    ["pid=a&pid=b", "a"],
    ["pid=a%00b", "a\0b"],
    ["mode=" + "x".repeat(16_384), "x".repeat(16_384)],
  ];
  for (const [query, expected] of table) {
    const name = query.split("=")[0]!;
    assertEquals(parsePlaybackParams(new URLSearchParams(query)), { [name]: expected }, query.slice(0, 60));
  }
});

test("parsePlaybackParams() says what is expected in the place of a value that it refuses", () => {
  const table: [string, string][] = [
    ["_idx=1.5", "_idx: an integer is expected"],
    ["_idx=9999999999999999", "_idx: an integer is expected"],
    ["use_api_stop=yes", "use_api_stop: 0 or 1 is expected"],
    ["use_api_stop=+", "use_api_stop: 0 or 1 is expected"],
    ["next_file_indexes=1,a", "next_file_indexes: an integer is expected"],
    ["format=JSON", "format: redirect or json is expected"],
    ["start_from=1:75:00", "start_from: seconds (90.5) or a time (1:02:03) are expected"],
    ["cushion=0", "cushion: auto, off or 1 to 7200 seconds are expected"],
    ["cushion=7201", "cushion: auto, off or 1 to 7200 seconds are expected"],
    ["cushion=on", "cushion: auto, off or 1 to 7200 seconds are expected"],
    ["hlc=2", "hlc: 0 or 1 is expected"],
    ["mode=" + "x".repeat(16_385), "mode: at most 16384 characters"],
    ["_idx=" + " ".repeat(16_384) + "1", "_idx: at most 16384 characters"],
    ["_idx=x&hlc=y", "_idx: an integer is expected"],
  ];
  for (const [query, expected] of table) {
    const error = assertThrows(() => parsePlaybackParams(new URLSearchParams(query)), MillraceError);
    assertEquals([error.code, error.message], ["invalid_argument", `invalid ${expected}`], query.slice(0, 60));
  }
});

test("PLAYBACK describes every parameter, and gives the reason where one has no effect", () => {
  const names = new Set(DOCUMENTED.map(([name]) => name));
  const idle: string[] = [];
  for (const row of playbackMarkdown().split("\n").slice(2)) {
    const [, name, kind, description] = /^\| `(\w+)` \| ([\w ]+) \| (.{10,}) \|$/.exec(row)!;
    assertEquals(Object.hasOwn(PLAYBACK.shape, name!), true, name);
    assert(
      ["string", "integer", "integers", "boolean", "time", "redirect or json", "word or seconds"].includes(kind!),
      row,
    );
    if (/^Has no effect: .{10,}/.test(description!)) idle.push(name!);
  }
  assertEquals(idle.filter((name) => !names.has(name)), []);
  assertEquals(idle.sort(), [
    "cas",
    "collect_start_stats",
    "debug_options",
    "force_ads",
    "gdpr_consent",
    "hlc",
    "is_restarted_session",
    "mode",
    "product_key",
    "provider",
    "proxy_vast_response",
    "quality",
    "secondary_product_key",
    "stream_id",
  ]);
});

test("wantsSingleReader() allows any number of readers by default", () => {
  const of = (query: string) => wantsSingleReader(parsePlaybackParams(new URLSearchParams(query)));
  for (
    const [query, wanted] of [
      ["", false],
      ["stop_prev_read_thread=1", true],
      ["stop_prev_read_thread=0", false],
      ["allow_multiple_threads_reading=1", false],
      ["allow_multiple_threads_reading=0", true],
      ["allow_multiple_threads_reading=1&stop_prev_read_thread=1", false],
    ] as const
  ) {
    assertEquals(of(query), wanted, query);
  }
});

const DEFAULTS = ["auto", "never", "always"] as const;

test("transcodingOf() follows transcode_audio with any default", () => {
  for (const byDefault of DEFAULTS) {
    const of = (query: string) => transcodingOf(parsePlaybackParams(new URLSearchParams(query)), byDefault);
    assertEquals(of("transcode_audio=0&transcode_mp3=1"), null);
    assertEquals(of("transcode_audio=1"), { mp3: false, ac3: false });
    assertEquals(of("transcode_audio=1&transcode_ac3=1"), { mp3: false, ac3: true });
  }
});

test("transcodingOf() takes the default when a request says nothing of transcode_audio", () => {
  const of = (query: string, byDefault: TranscodeAudio) =>
    transcodingOf(parsePlaybackParams(new URLSearchParams(query)), byDefault);
  assertEquals(of("transcode_mp3=1&transcode_ac3=1", "never"), null);
  assertEquals(of("transcode_mp3=1", "auto"), { mp3: false, ac3: false, onlyIfSilent: true });
  assertEquals(of("transcode_mp3=1", "always"), { mp3: true, ac3: false });
});

test("addTranscoding() adds what transcodingOf() reads again, and nothing where that is the default", () => {
  for (const byDefault of DEFAULTS) {
    for (const query of ["", "transcode_audio=0", "transcode_audio=1", "transcode_audio=1&transcode_mp3=1"]) {
      const of = (text: URLSearchParams) => transcodingOf(parsePlaybackParams(text), byDefault);
      const added = new URLSearchParams();
      addTranscoding(added, of(new URLSearchParams(query)), byDefault);
      assertEquals(of(added), of(new URLSearchParams(query)), `${byDefault} ${query}`);
      if (query === "") assertEquals(added.size, 0, byDefault);
    }
  }
});
