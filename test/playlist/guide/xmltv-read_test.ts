/** Guides as they come: whole, in pieces, damaged. */
import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../../src/errors.ts";
import { readXmltv, type ReadXmltvOptions, type XmltvEvent } from "../../../src/playlist/guide/xmltv-read.ts";
import { seeded } from "../../support/random.ts";

const START = Date.UTC(2026, 10, 27, 1) / 1000;

async function read(text: string | Uint8Array, pieceBytes = Infinity, options: ReadXmltvOptions = {}) {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      yield bytes.slice(at, pieceBytes === Infinity ? undefined : at + pieceBytes);
    }
  }
  const events: XmltvEvent[] = [];
  for await (const some of readXmltv(pieces(), options)) events.push(...some);
  return events;
}

const tv = (inside: string) => `<?xml version="1.0"?>\n<tv>${inside}</tv>`;
const programme = (inside: string, more = 'start="20261127010000" channel="a"') =>
  tv(`<programme ${more}>${inside}</programme>`);

const GUIDE = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tv SYSTEM "xmltv.dtd">
<tv generator-info-name="x">
  <channel id="a.uk">
    <display-name lang="en">Alpha</display-name>
    <display-name>5.1</display-name>
    <icon src="http://h/a.png" width="1"/>
    <url>http://h/</url>
  </channel>
  <programme start="20261127010000 +0000" stop="20261127020000 +0000" channel="a.uk">
    <title lang="en">News &amp; Weather</title>
    <title lang="de">Nachrichten</title>
    <sub-title lang="en">The &#8220;late&#x201d; one</sub-title>
    <desc lang="en"><![CDATA[Tonight: <all>
      of it]]></desc>
    <desc lang="de">Heute</desc>
    <credits><director>D</director><actor role="r">A</actor></credits>
    <date>20250101</date>
    <category lang="en">News</category>
    <category lang="de">Info</category>
    <icon src="https://h/p.png"/>
    <episode-num system="xmltv_ns">1 . 4 . 0/1</episode-num>
    <episode-num system="onscreen">Folge 5</episode-num>
    <rating system="x"><value>PG</value></rating>
  </programme>
</tv>
`;

const EVENTS: XmltvEvent[] = [
  { kind: "channel", id: "a.uk", names: ["Alpha", "5.1"], icon: "http://h/a.png" },
  {
    kind: "programme",
    channel: "a.uk",
    start: START,
    stop: START + 3600,
    texts: [
      { lang: "en", title: "News & Weather", subtitle: "The “late” one", description: "Tonight: <all> of it" },
      { lang: "de", title: "Nachrichten", subtitle: "The “late” one", description: "Heute" },
    ],
    categories: ["News", "Info"],
    icon: "https://h/p.png",
    episode: "Folge 5",
    year: 2025,
  },
];

test("readXmltv() reads channels and programmes, wherever the bytes are divided", async () => {
  for (const pieceBytes of [1, 3, 7, 64, Infinity]) {
    assertEquals(await read(GUIDE, pieceBytes), EVENTS, `${pieceBytes}`);
  }
});

test("readXmltv() reads other encodings than UTF-8", async () => {
  const head = '<?xml version="1.0" encoding="ISO-8859-1"?><tv><channel id="a"><display-name>Caf';
  const bytes = Uint8Array.from(`${head}\xe9</display-name></channel></tv>`, (char) => char.charCodeAt(0));
  assertEquals(await read(bytes), [{ kind: "channel", id: "a", names: ["Café"], icon: "" }]);
  const wide = new Uint8Array([0xff, 0xfe, ...new Uint8Array(Uint16Array.from(GUIDE, (c) => c.charCodeAt(0)).buffer)]);
  assertEquals(await read(wide), EVENTS);
});

test("readXmltv() takes what real guides write", async () => {
  const titles: [string, string][] = [
    ["<title>Tom & Jerry</title>", "Tom & Jerry"],
    ["<title>a &lt;b&gt; &quot;c&quot; &apos;d&apos; &amp;amp;</title>", "a <b> \"c\" 'd' &amp;"],
    ["<title>  a\n\t b  </title>", "a b"],
    ["<title></title><title>b</title>", "b"],
    ["<title>a<br/>b</title>", "ab"],
    [`<title>${"x".repeat(600)}</title>`, "x".repeat(500)],
    ["<title lang='en'>a</title><title lang='en'>b</title>", "a"],
  ];
  for (const [inside, title] of titles) {
    const [event] = await read(programme(inside));
    assert(event?.kind === "programme");
    assertEquals(event.texts[0]?.title, title, inside.slice(0, 40));
  }
  const episodes: [string, string][] = [
    ["<episode-num>S01E02</episode-num>", "S01E02"],
    ['<episode-num system="xmltv_ns">1.4.</episode-num>', "S02E05"],
    ['<episode-num system="xmltv_ns">.9.</episode-num>', "E10"],
    ['<episode-num system="xmltv_ns">..</episode-num>', ""],
    ['<episode-num system="dd_progid">EP01</episode-num>', ""],
  ];
  for (const [inside, episode] of episodes) {
    const [event] = await read(programme(`<title>t</title>${inside}`));
    assert(event?.kind === "programme");
    assertEquals(event.episode, episode, inside);
  }
});

test("readXmltv() leaves out programmes without a time, title or channel, and an end before the start", async () => {
  const title = "<title>t</title>";
  assertEquals(await read(programme("<desc>d</desc>")), []);
  for (
    const attributes of [
      'start="x" channel="a"',
      'channel="a"',
      'start="20261127010000"',
      `start="20261127" channel=""`,
    ]
  ) {
    assertEquals(await read(programme(title, attributes)), [], attributes);
  }
  const [event] = await read(programme(title, 'start="20261127010000" stop="20261127000000" channel="a"'));
  assertEquals(event?.kind === "programme" && event.stop, null);
  assertEquals(await read(tv('<channel><display-name>x</display-name></channel><other id="a"/>')), []);
});

test("readXmltv() reads past the channels that nobody wants", async () => {
  const two = tv(
    ["a", "b"].map((id) => `<programme start="20261127" channel="${id}"><title>${id}</title></programme>`).join(""),
  );
  const events = await read(two, Infinity, { isUnwanted: (id) => id === "a" });
  assertEquals(events.map((event) => event.kind === "programme" && event.channel), ["b"]);
});

test("readXmltv() refuses anything but a guide in words, after what was one", async () => {
  const table: [string, RegExp][] = [
    ["", /it is empty/],
    ["hello", /it is empty/],
    ["<html><body>busy</body></html>", /it is a web page/],
    ["<rss/>", /its first element is not <tv>/],
    [GUIDE.slice(0, -8), /it breaks off in the middle/],
    ["<tv>", /it breaks off in the middle/],
    [`<tv>${"<a>".repeat(100)}`, /nested far too deep/],
    [`<tv><programme start="${"1".repeat(300_000)}`, /text of great length/],
    [`<tv><${"a".repeat(300_000)}`, /text of great length/],
    [`<tv><!-- ${"a".repeat(300_000)}`, /text of great length/],
    [`<tv>${" ".repeat(1_100_000)}</tv>`, /text of great length/],
  ];
  for (const [text, message] of table) {
    const error = await assertRejects(() => read(text), MillraceError);
    assert(error.code === "invalid_argument" && message.test(error.message), `${text.slice(0, 30)}: ${error.message}`);
  }
});

test("readXmltv() expands no entities of a document", async () => {
  const text = `<!DOCTYPE tv [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>${programme("<title>x &b;</title>")}`;
  const [event] = await read(text.replace('<?xml version="1.0"?>', ""));
  assertEquals(event?.kind === "programme" && event.texts[0]?.title, "x &b;");
});

test("readXmltv() ends when its signal fires", async () => {
  const control = new AbortController();
  control.abort();
  const error = await assertRejects(() => read(GUIDE, 64, { signal: control.signal }), MillraceError);
  assertEquals(error.code, "aborted");
});

test("readXmltv() yields programmes or says why not, whatever bytes come", async () => {
  const random = seeded(46);
  const parts = [
    "<",
    ">",
    "/",
    '"',
    "&",
    ";",
    "]]>",
    "<![CDATA[",
    "<!--",
    "-->",
    "<tv>",
    "</tv>",
    "<programme ",
    "\0",
    "é",
  ];
  for (let round = 0; round < 300; round++) {
    let text = GUIDE;
    for (let edits = 1 + Math.floor(random() * 8); edits > 0; edits--) {
      const at = Math.floor(random() * text.length);
      const part = parts[Math.floor(random() * parts.length)]!;
      text = text.slice(0, at) + part + text.slice(at + Math.floor(random() * 12));
    }
    try {
      for (const event of await read(text, 1 + Math.floor(random() * 200))) {
        if (event.kind === "programme") assert(event.start >= 0 && event.texts.length > 0);
      }
    } catch (error) {
      assert(error instanceof MillraceError && error.code === "invalid_argument", String(error));
    }
  }
});
