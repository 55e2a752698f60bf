import { test } from "node:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { readCriteria } from "../../../src/http/media-server/search-criteria.ts";
import { UpnpError } from "../../../src/http/media-server/soap.ts";
import type { CatalogueFilter } from "../../../src/playlist/catalogue.ts";
import { seededBelow } from "../../support/random.ts";

const YES: CatalogueFilter = { kind: "constant", value: true };
const NO: CatalogueFilter = { kind: "constant", value: false };
const title = (text: string, more: Partial<CatalogueFilter> = {}) =>
  ({ kind: "title", test: "contains", text, negated: false, ...more }) as CatalogueFilter;

test("readCriteria() reads the criteria of control points", () => {
  const table: [string, CatalogueFilter][] = [
    ["*", YES],
    [' dc:title contains "a b" ', title("a b")],
    ['dc:title doesNotContain "x"', title("x", { negated: true })],
    ['dc:title = "x"', title("x", { test: "is" })],
    ['dc:title != "x"', title("x", { test: "is", negated: true })],
    [String.raw`dc:title contains "say \"hi\" \\ (or)"`, title('say "hi" \\ (or)')],
    ['dc:title contains ""', YES],
    ['upnp:class derivedfrom "object.item.videoItem"', YES],
    ['upnp:class derivedfrom "object.item.video"', NO],
    ['upnp:class derivedfrom "object.item.audioItem"', NO],
    ['upnp:class = "object.item.videoItem.videoBroadcast"', { kind: "live", value: true }],
    ['upnp:class = "object.item.videoItem"', { kind: "live", value: false }],
    ['upnp:class contains "Broadcast"', { kind: "live", value: true }],
    ["@refID exists false", YES],
    ["res@duration exists true", NO],
    ['dc:creator contains "x"', NO],
    [
      '(upnp:class derivedfrom "object.item.videoItem" and @refID exists false)and dc:title contains "x"',
      { kind: "all", of: [{ kind: "all", of: [YES, YES] }, title("x")] },
    ],
    [
      'dc:title contains "a" or dc:title contains "b" AND dc:title contains "c"',
      { kind: "any", of: [title("a"), { kind: "all", of: [title("b"), title("c")] }] },
    ],
  ];
  for (const [text, filter] of table) assertEquals(readCriteria(text), filter, text);
});

test("readCriteria() refuses criteria that are malformed, too long or too deep with 708", () => {
  const table = [
    "",
    "(",
    ")",
    "**",
    "dc:title",
    "dc:title contains",
    "dc:title contains x",
    'dc:title contains "x',
    'dc:title near "x"',
    'upnp:class near "x"',
    'dc:title contains "x" and',
    'dc:title contains "x" dc:title contains "y"',
    '(dc:title contains "x"',
    "@id exists maybe",
    '"x" contains "y"',
    `dc:title contains "${"x".repeat(2000)}"`,
    `${"(".repeat(40)}dc:title contains "x"${")".repeat(40)}`,
  ];
  for (const text of table) assertEquals(assertThrows(() => readCriteria(text), UpnpError).errorCode, 708, text);
});

test("readCriteria() survives random sequences of its own keywords", () => {
  const below = seededBelow(7);
  const words = [
    "(",
    ")",
    '"',
    "\\",
    '"x"',
    " and ",
    " or ",
    "dc:title",
    " contains ",
    "upnp:class",
    " = ",
    "*",
    "exists",
    " true ",
  ];
  for (let round = 0; round < 5000; round++) {
    const text = Array.from({ length: below(12) }, () => words[below(words.length)]).join("");
    try {
      readCriteria(text);
    } catch (error) {
      assert(error instanceof UpnpError, text);
    }
  }
});
