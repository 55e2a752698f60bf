/** Reading the XML of strangers' devices: what a document may cost. */
import { test } from "node:test";
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { servicesOf } from "../../src/upnp/services.ts";
import { childText, elementsOf, readInTurn, readXml, textIn } from "../../src/upnp/xml.ts";
import { seededBelow } from "../support/random.ts";

const LOCATION = new URL("http://192.168.7.1/d.xml");
const MOST_CHARS = 256 * 1024;

/** `unit` as often as a document may have it, inside a root element. */
const filled = (unit: string, times = Math.floor((MOST_CHARS - 20) / unit.length)) =>
  `<root>${unit.repeat(times)}</root>`;
const nested = (depth: number) => "<a>".repeat(depth) + "</a>".repeat(depth);

test("readXml() refuses documents with too many elements, references or attributes, or too deep", () => {
  const attributes = Array.from({ length: 20_000 }, (_, i) => `a${i}=""`).join(" ");
  const refused = [
    ...["<a/>", "<a/>\u{1f4fa}", "&amp;", "&#65;", "<!---->", "<![CDATA[]]>", "<?a?>"].map((unit) => filled(unit)),
    `<root ${attributes}/>`,
    filled("x", MOST_CHARS),
    nested(34),
    nested(2000),
    "<a>".repeat(5000),
  ];
  for (const text of refused) {
    assertEquals(assertThrows(() => readXml(text), MillraceError).code, "protocol_violation", text.slice(0, 40));
  }
  for (const text of [nested(33), filled("<a b='c'/>", 2000), filled("x"), filled("\u{1f4fa}", 100_000)]) readXml(text);
});

test("readXml() reads a document of carriage returns, lines of any system, and the bytes around a document", () => {
  assertEquals(textIn(readXml(`<root><a>${"\r".repeat(250_000)}x</a></root>`), "a"), "x");
  assertEquals(textIn(readXml("\r\n<root><a>1\r\n2\r3\n4</a></root>\0\0"), "a"), "1\n2\n3\n4");
});

test("elementsOf() finds elements at any depth, in their order", () => {
  const root = readXml("<r><x:b i='1'><b i='2'/><c><b i='3'/></c></x:b><d/><b i='4'/></r>");
  assertEquals([...elementsOf(root, "b")].map(({ attributes }) => attributes["i"]), ["1", "2", "3", "4"]);
});

test("servicesOf() takes a service's own address, none of a service inside it, and only some services", () => {
  const service = (inside: string) => `<service><serviceType>urn:a:1</serviceType>${inside}</service>`;
  const at = (path: string) => `<controlURL>${path}</controlURL>`;
  const found = servicesOf(readXml(`<root>${service(service(at("/inner")) + at("/outer"))}</root>`), LOCATION).services;
  assertEquals(found.map(({ controlUrl }) => controlUrl.pathname), ["/outer", "/inner"]);
  assertEquals(childText(readXml("<r><s><t>in</t></s></r>"), "t"), "");
  assertEquals(servicesOf(readXml(filled(service(at("/x")), 300)), LOCATION).services.length, 64);
});

test("readXml() reads or refuses any text", () => {
  const below = seededBelow(5);
  const good = `<root a="1"><b>&amp;<![CDATA[x]]></b><!-- c --><x:d e='f'/></root>`;
  for (let round = 0; round < 2000; round++) {
    const at = below(good.length);
    const text = good.slice(0, at) + String.fromCharCode(below(128)) + good.slice(at + below(4));
    try {
      readXml(text);
    } catch (error) {
      assert(error instanceof MillraceError && error.code === "protocol_violation", text);
    }
  }
});

test("readInTurn() lets timers run between any two documents, in order, and reads none whose signal fired", async () => {
  const { signal } = new AbortController();
  const events: string[] = [];
  const gone = new AbortController();
  const tick = () => setTimeout(() => events.push("timer"), 0);
  const reads = ["1", "2", "3"].map((name) =>
    readInTurn(() => {
      events.push(name);
      tick();
      if (name === "2") throw new MillraceError("protocol_violation", "no XML");
      return name;
    }, signal).catch((error) => error.code)
  );
  const given = assertRejects(() => readInTurn(() => events.push("never"), gone.signal), MillraceError);
  gone.abort();
  assertEquals((await given).code, "aborted");
  assertEquals(await Promise.all(reads), ["1", "protocol_violation", "3"]);
  await readInTurn(() => events.push("end"), signal);
  assertEquals(events, ["1", "timer", "2", "timer", "3", "timer", "end"]);
});
