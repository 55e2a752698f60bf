/** Subtitles in the encodings that people have them in. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { concatBytes, fromHex } from "../../src/bytes/hex.ts";
import { readCues } from "../../src/media/subtitles/cues.ts";
import { subtitlesAsUtf8 } from "../../src/playback/subtitle-encoding.ts";

const HEAD = new TextEncoder().encode("1\n00:00:01,000 --> 00:00:02,000\n");

/** The text of the cue whose bytes are `hex`. */
async function textOf(hex: string, language: string | null): Promise<string | undefined> {
  return readCues(await subtitlesAsUtf8(concatBytes([HEAD, fromHex(hex)!]), language))[0]?.text;
}

for (
  const { encoding, language, text, hex } of [
    {
      encoding: "windows-1250",
      language: "pl",
      text: "Zażółć gęślą jaźń, proszę pani",
      hex: "5a61bff3b3e62067ea9c6cb9206a619ff12c2070726f737aea2070616e69",
    },
    {
      encoding: "windows-1255",
      language: "he",
      text: "שלום לכולם, מה שלומכם היום",
      hex: "f9ece5ed20ecebe5eced2c20eee420f9ece5eeebed20e4e9e5ed",
    },
    {
      encoding: "shift_jis",
      language: "ja",
      text: "おはようございます。今日はいい天気ですね",
      hex: "82a882cd82e682a482b282b482a282dc82b781428da193fa82cd82a282a293568b4382c582b782cb",
    },
    {
      encoding: "gb18030",
      language: null,
      text: "你好，今天天气很好，我们去公园吧",
      hex: "c4e3bac3a3acbdf1ccecccecc6f8badcbac3a3acced2c3c7c8a5b9abd4b0b0c9",
    },
    {
      encoding: "koi8-r",
      language: null,
      text: "Здравствуйте, как ваши дела сегодня вечером",
      hex: "fac4d2c1d7d3d4d7d5cad4c52c20cbc1cb20d7c1dbc920c4c5ccc120d3c5c7cfc4ced120d7c5dec5d2cfcd",
    },
  ]
) {
  test(`subtitlesAsUtf8() reads ${encoding} when the name says ${language ?? "no language"}`, async () => {
    assertEquals(await textOf(hex, language), text);
  });
}

test("subtitlesAsUtf8() leaves UTF-8 as it is, whatever the name says and with a wrong byte", async () => {
  const bytes = new TextEncoder().encode("1\n00:00:01,000 --> 00:00:02,000\nשלום לכולם\n");
  assertEquals(await subtitlesAsUtf8(bytes, "pl"), bytes);
  const damaged = concatBytes([bytes, Uint8Array.of(0xff)]);
  assertEquals(await subtitlesAsUtf8(damaged, "he"), damaged);
});
