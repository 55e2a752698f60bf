/** Guides of the library's channels: matched, merged, kept, renewed. */
import { gzipSync } from "node:zlib";
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { fails } from "../external-support.ts";
import { channel, programme, tv, useGuideServer, withGuides } from "./guide-support.ts";

const server = useGuideServer();

const list = (guide: string, ...entries: string[]) =>
  `#EXTM3U url-tvg="${server.url}${guide}"\n${entries.join("\n")}\n`;
const entry = (title: string, extra = "") => `#EXTINF:-1${extra},${title}\nhttp://h/${encodeURIComponent(title)}`;

test("Guide keeps the programmes of a list's channels, found by tvg-id, then by name", async () => {
  server.answers.set(
    "/guide.xml",
    tv(
      channel("a.uk", "Something else"),
      channel("b.uk", "Beta"),
      channel("c.uk", "Gamma", "GAMMA TV"),
      channel("z.uk", "Not in the list"),
      programme("a.uk", "A now", -1, 1),
      programme("a.uk", "A next", 1, 2),
      programme("b.uk", "B now", -1, 1),
      programme("c.uk", "C later", 2, 3),
      programme("z.uk", "Z now", -1, 1),
    ),
  );
  await withGuides(async ({ addList, on, nowAndNext, guide }) => {
    await addList(
      server,
      "/list",
      list(
        "/guide.xml",
        entry("Alpha", ' tvg-id="A.uk"'),
        entry("BETA HD"),
        entry("Other", ' tvg-id="elsewhere" tvg-name="Gamma TV"'),
        entry("Unknown"),
      ),
    );
    assertEquals(await on("Alpha"), ["-1-1 A now", "1-2 A next"]);
    assertEquals(await on("BETA HD"), ["-1-1 B now"]);
    assertEquals(await on("Other"), ["2-3 C later"]);
    assertEquals(await on("Unknown"), []);
    assertEquals(await nowAndNext("Alpha"), ["A now", "A next"]);
    assertEquals(await nowAndNext("Other"), [null, "C later"]);
    assertEquals(await nowAndNext("Unknown"), [null, null]);
    const [source] = await guide.sources();
    assertEquals([source!.channels, source!.programmes, source!.last_error], [4, 4, ""]);
  });
});

test("Guide reads gzip, ends that are not stated, and channels that the guide does not name", async () => {
  const text = tv(programme("a", "One", 0), programme("a", "Two", 2), programme("b", "Long", 1));
  server.answers.set("/guide.xml.gz", new Uint8Array(gzipSync(text)));
  await withGuides(async ({ addList, on, spent }) => {
    await addList(server, "/list", list("/guide.xml.gz", entry("A", ' tvg-id="a"'), entry("B", ' tvg-id="b"')));
    assertEquals(spent, [text.length], "what it unpacked to is of no use any more");
    assertEquals(await on("A"), ["0-2 One", "2-8 Two"]);
    assertEquals(await on("B"), ["1-7 Long"]);
  });
});

test("Guide reads xz, whatever its address ends in", async () => {
  // <tv><programme start="20260101010000" channel="a"><title>Eins</title></programme></tv>, by `xz`.
  const packed = Buffer.from(
    "/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj4ABVAEhdAB4dCsPg9/m4Aa1dKgUdy5ajn4Ot2n+cswYGrokTH901LmyZ" +
      "cczTgbbUnra6qhruTpSCyUOR2X+sJsYaxfruY/EV7G9eTDQ5AAC4EmfyKx18gwABZFZJ7x+jH7bzfQEAAAAABFla",
    "base64",
  );
  server.answers.set("/guide.xml.gz", new Uint8Array(packed));
  await withGuides(async ({ addList, on }) => {
    await addList(server, "/list", list("/guide.xml.gz", entry("A", ' tvg-id="a"')));
    assertEquals(await on("A"), ["1-7 Eins"]);
  });
});

test("Guide joins channels of one id in any case, keeps one programme per time, and none of year 0", async () => {
  server.answers.set(
    "/guide.xml",
    tv(
      channel("a.uk", "Alpha"),
      channel("A.UK", "Beta"),
      channel("b.uk", "Gamma"),
      channel("c.uk", "Gamma"),
      programme("a.uk", "First", 0, 1),
      programme("A.uk", "Corrected", 0, 2),
      programme("a.uk", "Backwards", 3, 2),
      programme("b.uk", "Of b", 0, 1),
      programme("c.uk", "Of c", 1, 2),
      '<programme start="00000101000000" stop="00000101010000" channel="a.uk"><title>Year 0</title></programme>',
    ),
  );
  await withGuides(async ({ addList, on }) => {
    await addList(server, "/list", list("/guide.xml", entry("Alpha"), entry("Beta"), entry("Gamma")));
    const ofA = ["0-2 Corrected", "3-9 Backwards"];
    assertEquals([await on("Alpha"), await on("Beta")], [ofA, ofA]);
    // Of two channels of one name the first counts: they may be those of two regions.
    assertEquals(await on("Gamma"), ["0-1 Of b"]);
  });
});

test("Guide moves programmes by tvg-shift", async () => {
  server.answers.set("/guide.xml", tv(programme("a", "Show", -1, 0.5), programme("a", "Later", 0.5, 2)));
  await withGuides(async ({ addList, on, nowAndNext }) => {
    await addList(
      server,
      "/list",
      list("/guide.xml", entry("A", ' tvg-id="a"'), entry("A +1", ' tvg-id="a" tvg-shift="+1"')),
    );
    assertEquals([await on("A"), await on("A +1")], [["-1-0.5 Show", "0.5-2 Later"], ["0-1.5 Show", "1.5-3 Later"]]);
    assertEquals(await nowAndNext("A +1"), ["Show", "Later"]);
  });
});

test("Guide merges guides: one that a caller gave counts, lists' guides fill its gaps", async () => {
  server.answers.set("/a.xml", tv(programme("x", "A1", 0, 1), programme("x", "A2", 1, 2), programme("x", "A3", 2, 3)));
  server.answers.set("/b.xml", tv(programme("x", "B", 1, 1.75)));
  await withGuides(async ({ addList, on, guide }) => {
    await addList(server, "/list", list("/a.xml", entry("X", ' tvg-id="x"')));
    const id = await guide.add({ url: `${server.url}/b.xml`, updateInterval: 0, allowPrivate: true }, false);
    await guide.update(id);
    assertEquals(await on("X"), ["0-1 A1", "1-1.75 B", "2-3 A3"]);
    await guide.delete(id);
    assertEquals(await on("X"), ["0-1 A1", "1-2 A2", "2-3 A3"]);
  });
});

test("Guide renews what is to come, keeps what was on, and drops what is over for a week", async () => {
  const first = tv(programme("a", "Was", -2, -1), programme("a", "Now", -1, 1), programme("a", "Planned", 1, 2));
  server.answers.set("/guide.xml", first);
  server.etags.set("/guide.xml", '"1"');
  await withGuides(async ({ addList, on, guide, clock, settled }) => {
    await addList(server, "/list", list("/guide.xml", entry("A", ' tvg-id="a"')));
    assertEquals(await on("A", -3), ["-2--1 Was", "-1-1 Now", "1-2 Planned"]);
    server.answers.set("/guide.xml", tv(programme("a", "Now", -1, 1.5), programme("a", "Instead", 1.5, 2)));
    server.etags.set("/guide.xml", '"2"');
    const before = server.requests.length;
    clock.advance(13 * 3600_000);
    await settled();
    assertEquals(server.requests.slice(before).map(({ headers }) => headers["if-none-match"]), ['"1"']);
    assertEquals(await on("A", -3), ["-2--1 Was", "-1-1.5 Now", "1.5-2 Instead"]);
    // Not changed: nothing is read, and what is over goes nevertheless.
    clock.advance(8 * 86_400_000);
    await settled();
    assertEquals(await on("A", -3), []);
    assertEquals((await guide.sources())[0]!.last_error, "");
  });
  server.etags.clear();
});

test("Guide reads a guide again when a list brings channels that it has", async () => {
  server.answers.set("/guide.xml", tv(channel("b", "Beta"), programme("a", "A", 0, 1), programme("b", "B", 0, 1)));
  server.etags.set("/guide.xml", '"1"');
  await withGuides(async ({ addList, on, guide, settled }) => {
    await addList(server, "/1", list("/guide.xml", entry("A", ' tvg-id="a"')));
    assertEquals((await guide.sources())[0]!.programmes, 1);
    await addList(server, "/2", `#EXTM3U\n${entry("Beta 4K")}\n`);
    await settled();
    assertEquals([await on("A"), await on("Beta 4K")], [["0-1 A"], ["0-1 B"]]);
  });
  server.etags.clear();
});

test("Guide goes with the list that names it; a damaged one says why and keeps what it had", async () => {
  server.answers.set("/guide.xml", tv(programme("a", "A", 0, 1)));
  await withGuides(async ({ addList, on, guide, lists, settled }) => {
    const id = await addList(server, "/list", list("/guide.xml", entry("A", ' tvg-id="a"')));
    const [source] = await guide.sources();
    await fails(() => guide.delete(source!.id), /a list names this guide/);
    server.answers.set("/guide.xml", tv(programme("a", "B", 1, 2)).slice(0, -5));
    await fails(() => guide.update(source!.id), /it breaks off in the middle/);
    assertEquals((await guide.sources())[0]!.last_error, "invalid guide: it breaks off in the middle");
    assertEquals(await on("A"), ["0-1 A", "1-2 B"]);
    server.answers.set("/guide.xml", new Uint8Array([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0, 0, 4]));
    await fails(() => guide.update(source!.id), /its xz data is damaged/);
    server.answers.set("/guide.xml", "<html>");
    await fails(() => guide.update(source!.id), /it is a web page/);
    await lists.deleteExternal(id);
    await settled();
    assertEquals(await guide.sources(), []);
    assert(await guide.sources().then((all) => all.length === 0));
  });
});

test("Guide.add() refuses anything but an address, and one that is there", async () => {
  await withGuides(async ({ guide }) => {
    const source = { url: "http://127.0.0.1:1/g", updateInterval: 0, allowPrivate: false };
    await fails(() => guide.add({ ...source, url: "file:///etc/passwd" }, false), /http or https/);
    await fails(() => guide.add({ ...source, updateInterval: 5 }, false), /update_interval/);
    const id = await guide.add(source, false);
    await fails(() => guide.add(source, false), /has this address already/);
    await fails(() => guide.update(id), /private|not allowed/);
    await fails(() => guide.update(id + 1), /no guide/);
  });
});
