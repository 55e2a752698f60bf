import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import type { Cue } from "../../../src/media/model/types.ts";
import { MAX_CUES, readCues } from "../../../src/media/subtitles/cues.ts";
import { renderWebVtt } from "../../../src/media/subtitles/webvtt.ts";
import { seeded } from "../../support/random.ts";
import { cpuMs } from "../../support/cpu-time.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const cue = (startMs: number, endMs: number, text: string, settings = ""): Cue => ({ startMs, endMs, settings, text });

const TABLE: readonly (readonly [what: string, file: string, cues: readonly Cue[]])[] = [
  ["SubRip", "1\n00:00:01,500 --> 00:00:04,000\nOne\ntwo\n\n2\n01:02:03,004 --> 01:02:05,000\nThree\n", [
    cue(1500, 4000, "One\ntwo"),
    cue(3_723_004, 3_725_000, "Three"),
  ]],
  ["a byte order mark and CRLF", "\uFEFF1\r\n00:00:01,0 --> 00:00:02,05\r\nA\r\n\r\n", [cue(1000, 2050, "A")]],
  ["no empty line between cues", "1\n00:00:01,000 --> 00:00:02,000\nA\n2\n00:00:03,000 --> 00:00:04,000\nB", [
    cue(1000, 2000, "A"),
    cue(3000, 4000, "B"),
  ]],
  ["a text that is a number", "1\n00:00:01,000 --> 00:00:02,000\n42\n\n", [cue(1000, 2000, "42")]],
  [
    "tags: common ones stay, fonts and places go, others are text",
    [
      "1\n00:00:01,000 --> 00:00:02,000 X1:0 X2:9",
      '{\\an8}<font color="#ff0000"><I>a</I></font> & <b>b</b> <script>c</script> 1 < 2 &amp; 3',
      "",
    ].join("\n"),
    [
      cue(1000, 2000, "<i>a</i> &amp; <b>b</b> &lt;script&gt;c&lt;/script&gt; 1 &lt; 2 &amp; 3", "line:0"),
    ],
  ],
  [
    "WebVTT",
    [
      "WEBVTT - a film",
      "",
      "NOTE nothing",
      "",
      "STYLE",
      "::cue { color: red }",
      "",
      "intro",
      "00:01.000 --> 00:02.000 align:start line:10% region:fred",
      "<v Anna>Hello</v>",
      "",
    ].join("\n"),
    [cue(1000, 2000, "<v Anna>Hello</v>", "align:start line:10%")],
  ],
  [
    "out of order, backwards and empty ones",
    [
      "1\n00:00:05,000 --> 00:00:06,000\nlate\n",
      "2\n00:00:01,000 --> 00:00:02,000\nearly\n",
      "3\n00:00:04,000 --> 00:00:03,000\nbackwards\n",
      "4\n00:00:07,000 --> 00:00:08,000\n{\\an8}\n",
    ].join("\n"),
    [cue(1000, 2000, "early"), cue(5000, 6000, "late")],
  ],
  ["no subtitles", "<html>\n-->\n\u0000", []],
  ["nothing", "", []],
];

for (const [what, file, cues] of TABLE) {
  test(`readCues() reads ${what}`, () => assertEquals(readCues(bytes(file)), cues));
}

test("readCues() knows Cyrillic, Western and UTF-16 files by their letters", () => {
  const file = (text: number[]) => new Uint8Array([...bytes("1\n00:00:01,000 --> 00:00:02,000\n"), ...text]);
  assertEquals(readCues(file([0xcf, 0xf0, 0xe8, 0xe2, 0xe5, 0xf2]))[0]!.text, "Привет");
  assertEquals(readCues(file([0x63, 0x61, 0x66, 0xe9]))[0]!.text, "café");
  const utf16 = [...`\uFEFF1\n00:00:01,000 --> 00:00:02,000\nд`].flatMap((
    c,
  ) => [c.charCodeAt(0) & 255, c.charCodeAt(0) >> 8]);
  assertEquals(readCues(new Uint8Array(utf16))[0]!.text, "д");
});

test("readCues() accepts any bytes within bounds, and its WebVTT reads back to the same cues", () => {
  const random = seeded(1);
  const pieces = [
    "1\n",
    "00:00:01,000 --> 00:00:02,000",
    "\n",
    "\n\n",
    "<b>",
    "<",
    "&",
    "-->",
    "WEBVTT\n\n",
    "{\\an8}",
    "é",
  ];
  for (let n = 0; n < 500; n++) {
    let file = "";
    for (let i = 0; i < 40; i++) file += pieces[Math.floor(random() * pieces.length)];
    const cues = readCues(bytes(file));
    const again = readCues(bytes(renderWebVtt(cues, 0)));
    assertEquals(
      again.map(({ startMs, endMs }) => [startMs, endMs]),
      cues.map((one) => [one.startMs, one.endMs]),
      file,
    );
    for (const { text } of cues) assert(!text.includes("-->") && !text.includes("\n\n"), JSON.stringify(text));
  }
  const many = "00:00:01,000 --> 00:00:02,000\nx\n\n".repeat(MAX_CUES + 5);
  assertEquals(readCues(bytes(many)).length, MAX_CUES);
  // A line that a careless expression would look at again and again.
  const began = cpuMs();
  readCues(bytes(`1\n00:00:01,000 -->${" ".repeat(1_000_000)}\n${"<".repeat(1_000_000)}\n`));
  assert(cpuMs() - began < 2000);
});

test("renderWebVtt() puts cues on the clock of the pictures, modulo 2^33, and ends with an empty line", () => {
  assertEquals(
    renderWebVtt([cue(3_723_004, 3_725_000, "a\nb", "line:0")], 2 ** 33 + 126_000),
    "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n\n01:02:04.404 --> 01:02:06.400 line:0\na\nb\n\n",
  );
  assertEquals(renderWebVtt([], null), "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n\n");
});
