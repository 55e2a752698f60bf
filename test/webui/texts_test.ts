import { test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import { TEXTS } from "../../src/webui/texts/assets.generated.ts";
import type { Stat } from "../../src/webui/engine.ts";
import { statusOf } from "../../src/webui/player-status.ts";
import { EN } from "../../src/webui/texts/en.ts";
import {
  bytesText,
  chooseLanguage,
  countText,
  durationText,
  errorText,
  LANGUAGES,
  lineText,
  listFailureText,
  mistakeText,
  reasonText,
  setLanguage,
  text,
} from "../../src/webui/texts.ts";

const STAT: Stat = {
  status: "prefuf",
  progress: 0,
  total_progress: 0,
  peers: 0,
  speed_down: 0,
  speed_up: 0,
  cushion_wait_s: null,
  cushion_play_s: null,
  stall_reason: null,
  error_message: null,
};

const gaps = (value: string) => [...value.matchAll(/\{\d\}/g)].map(([gap]) => gap).sort();

test("every language that can be chosen has a catalogue", () => {
  assertEquals(["en", ...Object.keys(TEXTS)].sort(), Object.keys(LANGUAGES).sort());
});

for (const name of Object.keys(TEXTS)) {
  const catalogue: typeof EN = JSON.parse(TEXTS[name]!);
  test(`the catalogue ${name} translates every text and keeps its gaps`, () => {
    assertEquals(Object.keys(catalogue).sort(), Object.keys(EN).sort());
    for (const [key, english] of Object.entries(EN)) {
      assertEquals(gaps(catalogue[key as keyof typeof EN]), gaps(english), key);
    }
  });
}

test("chooseLanguage() takes the first language that there is, else English", () => {
  assertEquals(chooseLanguage(["sv-SE", "es-MX", "ru"]), "es");
  assertEquals(chooseLanguage(["zh-Hans-CN"]), "zh");
  assertEquals(chooseLanguage(["sv"]), "en");
  assertEquals(chooseLanguage([]), "en");
});

test("text() fills placeholders, and reasonText() has a text for every reason that a session gives", () => {
  setLanguage("en", EN);
  assertEquals(text("importing", 3, "…"), "Importing: 3 of …");
  for (const reason of ["no_peers", "no_metadata", "slow_peers", "missing_piece", "choked"]) {
    assertEquals(typeof reasonText(reason), "string", reason);
  }
  assertEquals(reasonText("something_new"), null);
});

test("durationText() says about how long it takes", () => {
  assertEquals([3, 17, 80, 230, 5400].map(durationText), ["3 sec", "20 sec", "80 sec", "4 min", "90 min"]);
});

test("bytesText() chooses a readable unit", () => {
  assertEquals([0, 999, 1000, 1_234_567, 123_456_789, 5e15].map(bytesText), [
    "0 B",
    "999 B",
    "1.0 KB",
    "1.2 MB",
    "123 MB",
    "5000 TB",
  ]);
});

test("errorText() translates failures by their code, and leaves the engine's own words to English", () => {
  const failure = (message: string, code: number) => Object.assign(new Error(message), { code });
  const codes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];
  try {
    for (const [language, catalogue] of Object.entries(TEXTS)) {
      setLanguage(language, JSON.parse(catalogue));
      for (const code of codes) {
        const words = errorText(failure("item 7 is locked", code));
        assertEquals([words.includes("locked"), /undefined|error_/.test(words)], [false, false], `${language} ${code}`);
      }
      assertEquals(errorText(failure("something new", -2)), text("failed", "something new"));
      assertEquals(errorText(failure("start timeout: no_peers", 6)), text("gaveUp", text("no_peers")));
    }
    setLanguage("en", EN);
    assertEquals(errorText(failure("item 7 is locked", 8)), "That failed: item 7 is locked");
    assertEquals([errorText(failure("", -1)), errorText(null)], [text("engineGone"), text("engineGone")]);
  } finally {
    setLanguage("en", EN);
  }
});

test("listFailureText() says in the page's own words why a list was not read, in every language but English", () => {
  const failures: [message: string, error: string | null][] = [
    ["the server answered 401: check login and password", "connection_failed"],
    ["the server answered 503", "connection_failed"],
    ["the list lacks 12 of its 20 items, perhaps by a fault of its server, so nothing was changed", "conflict"],
    ["invalid playlist: it is a web page or XML document", "invalid_argument"],
    ["the list has no entries; the items of the last update stay", "invalid_argument"],
    ["the list has more than 500000 entries", "too_large"],
    ["the list did not come in time", "timeout"],
    ["internal error", "internal"],
  ];
  try {
    for (const [language, catalogue] of Object.entries(TEXTS)) {
      setLanguage(language, JSON.parse(catalogue));
      for (const [message, error] of failures) {
        const words = listFailureText(message, error);
        assertEquals(
          /the (?:server|list)|invalid|internal|undefined|error_/.test(words),
          false,
          `${language}: ${words}`,
        );
        for (const [number] of message.matchAll(/\b(?:401|503|12|20)\b/g)) assertMatch(words, new RegExp(number));
      }
      assertEquals(listFailureText("something new", ""), text("failed", "something new"));
    }
    setLanguage("en", EN);
    for (const [message, error] of failures) assertEquals(listFailureText(message, error), text("failed", message));
  } finally {
    setLanguage("en", EN);
  }
});

test("lineText() says in the page's own words what is wrong with a line, after the name of its list", () => {
  try {
    setLanguage("de", JSON.parse(TEXTS["de"]!));
    assertEquals(lineText("no address follows"), "es folgt keine Adresse");
    assertEquals(lineText("My list: the line is too long"), "My list: die Zeile ist zu lang");
    assertEquals(lineText("something new"), "something new");
    setLanguage("en", EN);
    for (const said of ["the address is too long", "not an address that can be played"]) {
      assertEquals(lineText(said), said);
    }
  } finally {
    setLanguage("en", EN);
  }
});

test("statusOf() says in the page's own words why a session does not play, in every language but English", () => {
  const words = (error_message: string, error_code: string | null) => {
    const stat = { ...STAT, error_message, error_code };
    return statusOf({ stat, contact: "ok", trouble: "", undecodable: "", mute: "", unsearchable: false }).words;
  };
  try {
    for (const [language, catalogue] of Object.entries(TEXTS)) {
      setLanguage(language, JSON.parse(catalogue));
      for (
        const code of ["tracker", "disk_full", "corrupt", "closed", "conflict", "bad_media", "unavailable", "timeout"]
      ) {
        assertEquals(words("some English", code).includes("English"), false, `${language} ${code}`);
      }
      assertEquals(words("start timeout: no_peers", "start_timeout"), text("gaveUp", text("no_peers")));
      assertEquals(words("something new", null), text("failed", "something new"));
    }
    setLanguage("en", EN);
    assertEquals(words("no room to store pieces", "disk_full"), "That failed: no room to store pieces");
  } finally {
    setLanguage("en", EN);
  }
});

test("mistakeText() says what a text was taken for that names no content, and what would do", () => {
  const table: [string, RegExp | null][] = [
    ["hello world", /“hello world” names nothing to play.*magnet/],
    ["hello ".repeat(20), /^“hello .{33}h?.*…” names nothing/],
    ["0123456789abcdef0123456789abcdef0123", /looks like an id, but has 36 characters.*40/],
    ["/home/ann/film.torrent", /path on a device.*drop/],
    ["C:\\Films\\film.torrent", /path on a device/],
    ["~/film.torrent", /path on a device/],
    ["file:///home/ann/film.torrent", /path on a device/],
    ["ftp://example.org/film.mkv", /begin with ftp:/],
    ["mailto:a@b.example", /begin with mailto:/],
    ["example.org/film.torrent", /put http:\/\/ or https:\/\/ before it/],
    ["192.168.7.5/film.torrent", /put http:\/\//],
    ["nas:8080/film.torrent", /put http:\/\//],
    ["a".repeat(40), null],
    ["https://example.org/a.torrent", null],
    ["MAGNET:?xt=urn:btih:x", null],
    [`any://${"b".repeat(40)}`, null],
    [`any:?infohash=${"b".repeat(40)}`, null],
    ["", null],
  ];
  for (const [pasted, expected] of table) {
    const words = mistakeText(pasted);
    assertEquals(expected === null ? words === null : expected.test(words ?? ""), true, `${pasted}: ${words}`);
  }
});

test("countText() has one item and several", () => {
  assertEquals([1, 2].map((count) => countText("items", count)), ["1 item", "2 items"]);
  assertEquals([1, 0].map((count) => countText("channels", count)), ["1 channel", "0 channels"]);
});
