import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../../src/errors.ts";
import { readExtInf } from "../../../src/playlist/m3u/extinf.ts";
import { countM3u, guidesOf, readM3u, type ReadM3uOptions } from "../../../src/playlist/m3u/read.ts";
import type { M3uEntry, M3uEvent, M3uHeader } from "../../../src/playlist/m3u/m3u-entry.ts";
import { writeM3u } from "../../../src/playlist/m3u/write.ts";
import { seededBelow } from "../../support/random.ts";
import { cpuMs } from "../../support/cpu-time.ts";

function streamOf(bytes: Uint8Array, chunkBytes = 7): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at += chunkBytes));
    },
  });
}

async function read(text: string | Uint8Array, options: ReadM3uOptions = {}, chunkBytes = 7) {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  const entries: M3uEntry[] = [];
  const errors: [number, string][] = [];
  let header: M3uHeader = { attributes: {} };
  for await (const event of readM3u(streamOf(bytes, chunkBytes), options)) {
    if (event.kind === "entry") entries.push(event.entry);
    else if (event.kind === "error") errors.push([event.error.line, event.error.message]);
    else header = event.header;
  }
  return { header, entries, errors };
}

async function write(header: M3uHeader, entries: readonly M3uEntry[]): Promise<string> {
  let text = "";
  for await (const part of writeM3u(header, entries)) text += part;
  return text;
}

const LIST = [
  '#EXTM3U url-tvg="http://a/g.xml.gz,http://b/g.xml" tvg-shift=-3, x-tvg-url="http://a/g.xml.gz"',
  '#EXTINF:-1 tvg-id="one.tv" tvg-logo="http://a/1,2.png" group-title="News, World" catchup="default" catchup-days="7",One, two',
  "#EXTGRP:News",
  "#EXTVLCOPT:http-user-agent=Box 1",
  "#KODIPROP:inputstream=inputstream.adaptive",
  "http://host/one.m3u8|User-Agent=x y",
  "",
  "#EXTINF:12.5,Film",
  "magnet:?xt=urn:btih:0123456789abcdef0123456789abcdef01234567",
  "0123456789abcdef0123456789abcdef01234567",
].join("\n");

test("readM3u() reads the attributes and directives of real lists", async () => {
  const { header, entries, errors } = await read(LIST);
  assertEquals(errors, []);
  assertEquals(guidesOf(header), ["http://a/g.xml.gz", "http://b/g.xml"]);
  assertEquals(header.attributes["tvg-shift"], "-3");
  assertEquals(entries.length, 3);
  assertEquals(entries[0], {
    url: "http://host/one.m3u8|User-Agent=x y",
    title: "One, two",
    durationSeconds: -1,
    attributes: {
      "tvg-id": "one.tv",
      "tvg-logo": "http://a/1,2.png",
      "group-title": "News, World",
      catchup: "default",
      "catchup-days": "7",
    },
    group: "News",
    directives: ["#EXTVLCOPT:http-user-agent=Box 1", "#KODIPROP:inputstream=inputstream.adaptive"],
  });
  assertEquals([entries[1]?.title, entries[1]?.durationSeconds, entries[1]?.directives], ["Film", 12.5, []]);
});

test("readM3u() reads LF, CRLF and CR lists alike, in chunks of any size", async () => {
  const expected = await read(LIST);
  for (const end of ["\n", "\r\n", "\r"]) {
    for (const chunkBytes of [1, 2, 3, 1000]) {
      assertEquals(
        await read("\uFEFF" + LIST.replaceAll("\n", end), {}, chunkBytes),
        expected,
        `${end.length} ${chunkBytes}`,
      );
    }
  }
});

test("readM3u() counts lines correctly with any line ends", async () => {
  for (const end of ["\n", "\r\n", "\r"]) {
    for (const chunkBytes of [1, 2, 1000]) {
      const { errors } = await read(["#EXTM3U", "", "", "junk", "http://a/b"].join(end), {}, chunkBytes);
      assertEquals(errors.map(([line]) => line), [4]);
    }
  }
});

test("readM3u() recognises encodings", async () => {
  const text = (title: string) => `#EXTM3U\n#EXTINF:-1,${title}\nhttp://a/b\n`;
  const single = (value: string, map: (code: number) => number) =>
    Uint8Array.from(value, (char) => map(char.charCodeAt(0)));
  const utf16 = (value: string, little: boolean) => {
    const bytes = new Uint8Array(value.length * 2);
    const view = new DataView(bytes.buffer);
    for (let i = 0; i < value.length; i++) view.setUint16(i * 2, value.charCodeAt(i), little);
    return bytes;
  };
  const cases: [string, Uint8Array][] = [
    ["Télé", new TextEncoder().encode(text("Télé"))],
    ["Télé Île", single(text("Télé Île"), (code) => code)],
    ["Первый канал", single(text("Первый канал"), (code) => code >= 0x410 ? code - 0x410 + 0xc0 : code)],
    ["Первый", utf16("\uFEFF" + text("Первый"), true)],
    ["Первый", utf16("\uFEFF" + text("Первый"), false)],
    ["Télé", utf16(text("Télé"), true)],
    ["Télé", utf16(text("Télé"), false)],
    ["Первый", gzipSync(new TextEncoder().encode(text("Первый")))],
  ];
  for (const [title, bytes] of cases) {
    for (const chunkBytes of [1, 3, 500]) {
      const { entries, errors } = await read(bytes, {}, chunkBytes);
      assertEquals([entries.map((entry) => entry.title), errors], [[title], []]);
    }
  }
});

test("readM3u() reports bad lines by number and keeps the good ones", async () => {
  const { entries, errors } = await read(
    [
      "#EXTM3U",
      "#EXTINF:-1,Lost",
      '#EXTINF:-1 tvg-id="open,Good',
      "http://a/1",
      "#EXTINF:-1,Script",
      "javascript:alert(1)",
      "C:\\video.ts",
      "# a remark",
      "http://a/2/Some%20Film.mkv?x=1",
      "x".repeat(500),
      '#EXTINF:-1,tvg-id="t" group-title="g",After',
      "udp://@239.0.0.1:1234",
      "#EXTINF:-1,Last",
    ].join("\n"),
    { maxLineBytes: 300 },
  );
  assertEquals(entries.map((entry) => entry.title), ["Good", "Some Film.mkv", "After"]);
  assertEquals(entries[2]?.attributes, { "tvg-id": "t", "group-title": "g" });
  assertEquals(errors.map(([line]) => line), [2, 6, 7, 10, 13]);
});

test("readM3u() resolves relative addresses against baseUrl", async () => {
  const { entries } = await read("#EXTM3U\nsub/a.ts\n/b.ts\n", { baseUrl: "http://h/lists/l.m3u" });
  assertEquals(entries.map((entry) => entry.url), ["http://h/lists/sub/a.ts", "http://h/b.ts"]);
});

test("readM3u() bounds bytes, unpacked bytes and entries", async () => {
  const code = async (bytes: Uint8Array, options: ReadM3uOptions) =>
    (await assertRejects(() => read(bytes, options, 5000), MillraceError)).code;
  assertEquals(await code(new Uint8Array(2000).fill(10), { maxBytes: 1000 }), "too_large");
  assertEquals(await code(gzipSync(new Uint8Array(5_000_000).fill(10)), { maxUnpackedBytes: 1_000_000 }), "too_large");
  assertEquals(await code(gzipSync(new Uint8Array(5000).fill(10)), { maxBytes: 10 }), "too_large");
  assertEquals(await code(Uint8Array.of(0x1f, 0x8b, 1, 2, 3), {}), "invalid_argument");
  assertEquals(await code(new TextEncoder().encode("<!DOCTYPE html>"), {}), "invalid_argument");
  assertEquals(await code(new TextEncoder().encode("#EXTM3U\n#EXT-X-TARGETDURATION:4"), {}), "invalid_argument");
  const { entries, errors } = await read("http://a/b\n".repeat(10), { maxEntries: 3 });
  assertEquals([entries.length, errors.map(([line]) => line)], [3, [4]]);
});

test("readM3u() cancels its stream when the reader leaves", async () => {
  let cancelled = false;
  const stream = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new TextEncoder().encode("http://a/b\n")),
    cancel: () => void (cancelled = true),
  });
  for await (const _ of readM3u(stream)) break;
  assertEquals(cancelled, true);
});

const PIECES = [
  "#EXTINF:",
  "-1",
  "0.5",
  ",",
  '"',
  "'",
  "=",
  " ",
  "\n",
  "\n",
  "\r\n",
  "tvg-id",
  'tvg-name="x"',
  "group-title='a \"b'",
  "#EXTGRP:",
  "#EXTVLCOPT:",
  "#KODIPROP:a=b",
  "#EXTM3U",
  "http://a/b",
  "magnet:?xt=1",
  "é",
  "Ж",
  "日本",
  "\0",
  "\t",
  "|",
  "#",
  "\u00a0",
  "\u2028",
];

function randomList(seed: number): string {
  const random = seededBelow(seed);
  let text = seed % 2 === 0 ? "#EXTM3U\n" : "http://h/first\n";
  for (let i = random(60); i >= 0; i--) text += PIECES[random(PIECES.length)]!;
  return text;
}

test("countM3u() returns the number of entries that readM3u() yields, and throws as it does", async () => {
  const counted = (text: string) => countM3u(streamOf(new TextEncoder().encode(text)), { maxEntries: 5 });
  for (let seed = 1; seed <= 200; seed++) {
    const text = randomList(seed);
    assertEquals(await counted(text), (await read(text, { maxEntries: 5 })).entries.length, `seed ${seed}`);
  }
  assertEquals(await counted(LIST), (await read(LIST)).entries.length);
  await assertRejects(() => counted("<html>"), MillraceError, "web page");
});

test("writeM3u() writes lists that readM3u() reads back unchanged, whatever was imported", async () => {
  for (let seed = 1; seed <= 1500; seed++) {
    const text = randomList(seed);
    const once = await read(text, {}, 64);
    const again = await read(await write(once.header, once.entries), {}, 64);
    assertEquals(
      again,
      { header: once.header, entries: once.entries, errors: [] },
      `seed ${seed}: ${JSON.stringify(text)}`,
    );
  }
});

test("writeM3u() lets no value break out of its line", async () => {
  const entry: M3uEntry = {
    url: "http://a/b\nhttp://evil/",
    title: "x\n#EXTINF:-1,y",
    durationSeconds: -1,
    attributes: { "tvg-id": "a\"b'c\r\nhttp://evil/", "bad name": "x" },
    group: "g\nhttp://evil/",
    directives: ["#EXTVLCOPT:a\nhttp://evil/", "http://evil/"],
  };
  const { entries, errors } = await read(await write({ attributes: { a: "1\n2" } }, [entry]));
  assertEquals([entries.length, errors], [1, []]);
  assertEquals(entries[0]?.attributes, { "tvg-id": "a\"b'c http://evil/" });
});

test("writeM3u() leaves no character that a reader could take for a line end", async () => {
  for (const end of ["\n", "\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\0"]) {
    const evil = `x${end}http://evil/${end}#EXTINF:-1,y`;
    const text = await write({ attributes: { a: evil } }, [
      {
        url: `http://a/${evil}`,
        title: evil,
        durationSeconds: -1,
        attributes: { b: evil },
        group: evil,
        directives: [],
      },
    ]);
    // deno-lint-ignore no-control-regex
    const lines = text.split(/[\n\r\v\f\x1c-\x1e\x85\u2028\u2029\0]/);
    assertEquals(lines.length, 5, JSON.stringify(lines));
    assertEquals(lines.filter((line) => line.startsWith("http://evil")), []);
  }
});

test("readM3u() reads 100,000 entries one at a time", async () => {
  let made = 0;
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      let text = made === 0 ? "#EXTM3U\n" : "";
      for (let i = 0; i < 500; i++, made++) {
        text += `#EXTINF:-1 tvg-id="c${made}" tvg-logo="http://h/${made}.png" group-title="G${
          made % 40
        }",Channel ${made}\nhttp://h/${made}.m3u8\n`;
      }
      controller.enqueue(new TextEncoder().encode(text));
      if (made >= 100_000) controller.close();
    },
  });
  let count = 0;
  let ahead = 0;
  let last: M3uEvent | undefined;
  for await (const event of readM3u(stream)) {
    last = event;
    if (event.kind === "entry") ahead = Math.max(ahead, made - count++);
  }
  assertEquals(count, 100_000);
  assertEquals(ahead <= 2000, true, `the reader ran ${ahead} entries ahead`);
  assertEquals(last?.kind === "entry" && last.entry.title, "Channel 99999");
});

test("readExtInf() takes hostile lines without trouble, and soon", () => {
  const before = cpuMs();
  for (const bit of ["a", 'a="', "a='", "a= ", ",", 'a="",', " ", "=", "-", "1."]) {
    readExtInf(`-1 ${bit.repeat(200_000 / bit.length)}`);
  }
  let names = "";
  for (let i = 0; i < 20_000; i++) names += `,a${i}=""`;
  readExtInf(`-1${names}`);
  assertEquals(cpuMs() - before < 2000, true);
});

test("readM3u() reports a last line that is too long, byte by byte", async () => {
  const { errors } = await read("\n" + "x".repeat(2000), { maxLineBytes: 1000 }, 1);
  assertEquals(errors, [[2, "the line is too long"]]);
});

test("guidesOf() finds guides only in the header line", async () => {
  const table: [string, string[] | null][] = [
    ["#EXTM3U", []],
    ["\uFEFF\r\n #EXTM3U\n", []],
    ['#EXTM3U url-tvg="http://a/1,http://b/2"', ["http://a/1", "http://b/2"]],
    ["#EXTM3U x-tvg-url='https://a/ ,' url-tvg=http://b/x.gz", ["http://b/x.gz", "https://a/"]],
    ['#extm3u URL-TVG = "http://a/" url-tvg="http://a/"', ["http://a/"]],
    ['#EXTM3U url-tvg="ftp://a/, file:///etc/passwd, nonsense, http://"', []],
    ['#EXTM3U\n#EXTINF:-1 url-tvg="http://a/",x', []],
    ["#EXTINF:-1,x\nhttp://c/", null],
    ["#EXTM3U8", null],
    ["", null],
  ];
  for (const [text, guides] of table) {
    let header: M3uHeader | null = null;
    for await (const event of readM3u(new Blob([text]).stream())) if (event.kind === "header") header = event.header;
    assertEquals(header === null ? null : guidesOf(header), guides, text);
  }
});
