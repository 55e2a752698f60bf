import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { z } from "zod";
import { ApiError } from "../../src/http/api/codes.ts";
import { readOwnInput } from "../http/read-input.ts";
import { methodsWith } from "../../src/http/api/method.ts";
import { jsonList, paramReader } from "../../src/http/api/params.ts";
import { METHODS } from "../../src/http/api/registry.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { seededBelow } from "../support/random.ts";

const read = paramReader(
  methodsWith<never>()({
    name: "probe",
    summary: "Every kind of parameter.",
    public: true,
    remote: true,
    params: z.object({
      id: z.int().min(1).max(100).optional(),
      value: z.boolean().optional(),
      ids: z.array(z.int().min(1)).min(1).max(4).optional(),
      query: z.array(z.string()).optional(),
      tags: jsonList(3, 10).optional(),
      mode: z.enum(["brief", "full", "none"]).optional(),
      url: z.string().regex(/^http:/, "an http address is expected").optional(),
      title: z.string().max(5).optional(),
      file: z.file().max(8).optional(),
      must: z.string(),
    }),
    result: z.literal("ok"),
    handle: () => "ok" as const,
  }),
);

async function parse(query: string, init?: RequestInit): Promise<Record<string, unknown> | [number, string, number]> {
  try {
    return read(await readOwnInput(new Request(`http://127.0.0.1/server/api?${query}`, init), new FakeClock()));
  } catch (error) {
    assert(error instanceof ApiError, String(error));
    return [error.code, error.message, error.status];
  }
}

test("paramReader() reads booleans, integers and lists in every accepted spelling", async () => {
  const table: [string, Record<string, unknown>][] = [
    ["value=1", { value: true }],
    ["value=true", { value: true }],
    ["value=True", { value: true }],
    ["value=TRUE", { value: true }],
    ["value=0", { value: false }],
    ["value=false", { value: false }],
    ["value=False", { value: false }],
    ["value=FALSE", { value: false }],
    ["value=", {}],
    ["id=7", { id: 7 }],
    ["id=", {}],
    ["ids=1,2,%203", { ids: [1, 2, 3] }],
    ["ids=1&ids=2,3", { ids: [1, 2, 3] }],
    ["query=a,b&query=c", { query: ["a,b", "c"] }],
    [`tags=${encodeURIComponent('["x","y"]')}`, { tags: ["x", "y"] }],
    ["tags=", { tags: [] }],
    ["mode=full", { mode: "full" }],
    ["title=", { title: "" }],
    ["unknown=1&__proto__=2&constructor=3", {}],
    ["title=a&title=b", { title: "a" }],
  ];
  for (const [query, expected] of table) {
    assertEquals(await parse(`must=x&${query}`), { must: "x", ...expected }, query);
  }
});

test("paramReader() reports missing and wrong parameters in the engine's own words", async () => {
  const table: [string, number, string][] = [
    ["", 2, "missing parameter: must"],
    ["method=probe&token=x&api_version=1&id=7", 2, "missing parameter: must"],
    ["mist=x&id=7", 2, "missing parameter: must; there is no parameter mist"],
    ["must=x&value=yes", 3, "value: 0 or 1 is expected"],
    ["must=x&value=2", 3, "value: 0 or 1 is expected"],
    ["must=x&id=1.5", 3, "id: an integer is expected"],
    ["must=x&id=99999999999999999999", 3, "id: an integer is expected"],
    ["must=x&id=0x10", 3, "id: an integer is expected"],
    ["must=x&id=0", 3, "id: at least 1"],
    ["must=x&id=101", 3, "id: at most 100"],
    ["must=x&ids=1,b", 3, "ids: an integer is expected"],
    ["must=x&ids=1,2,3,4,5", 3, "ids: at most 4 values"],
    ["must=x&ids=1,2,0", 3, "ids: value 3: at least 1"],
    ["must=x&ids=", 3, "ids: at least 1 value"],
    ["must=x&tags=%5B1%5D", 3, "tags: value 1: a text is expected"],
    ["must=x&tags=nonsense", 3, "tags: a JSON array is expected"],
    ["must=x&tags=%7B%7D", 3, "tags: a list is expected"],
    ["must=x&mode=half", 3, "mode: brief, full or none is expected"],
    ["must=x&title=toolong", 3, "title: at most 5 characters"],
    ["must=x&title=a%00b", 3, "title: a zero character has no place in it"],
    ["must=x&url=ftp://x", 3, "url: an http address is expected"],
  ];
  for (const [query, code, message] of table) {
    const expected = code === 2 ? message : `invalid parameter: ${message}`;
    assertEquals(await parse(query), [code, expected, 200], query);
  }
});

/** Phrases of the schema library's own messages. */
const LIBRARY_TEXT = /Too (?:big|small)|Invalid|expected (?:string|number|array|file)|to have|to be|received/;

test("paramReader() never shows the schema library's text", () => {
  const values = ["", "x", "-1", "0", "99999999999999", "[1]", "[[]]", "{}", "x".repeat(65_536), "1,".repeat(20_000)];
  const large = new File([new Uint8Array(65 * 1024 * 1024)], "large");
  let refused = 0;
  for (const method of METHODS) {
    const readOne = paramReader(method);
    const names = Object.keys(method.params.shape);
    for (const name of names) {
      for (const value of [...values, large]) {
        const texts = (asked: string) => typeof value !== "string" ? [] : asked === name ? [value] : ["1"];
        const file = () => value instanceof File ? value : undefined;
        try {
          readOne({ texts, list: () => undefined, file, names: () => [] });
        } catch (error) {
          refused++;
          assert(error instanceof ApiError, String(error));
          assertMatch(error.message, /^(?:missing|invalid) parameter: [a-z_]+(?:: .+)?$/);
          assert(!LIBRARY_TEXT.test(error.message), `${method.name} ${name}: ${error.message}`);
        }
      }
    }
  }
  assert(refused > 200, String(refused));
});

test("readInput() takes forms, multipart parts and a bare body", async () => {
  const post = (body: BodyInit, type?: string) => ({
    method: "POST",
    body,
    ...(type === undefined ? {} : { headers: { "content-type": type } }),
  });
  const form = await parse("must=query", post(new URLSearchParams({ must: "form", id: "4" })));
  assertEquals(form, { must: "query", id: 4 });
  const parts = new FormData();
  parts.append("must", "part");
  parts.append("file", new File(["12345678"], "../../etc/passwd"));
  const multipart = await parse("", post(parts)) as { must: string; file: File };
  assertEquals([multipart.must, await multipart.file.text()], ["part", "12345678"]);
  const bare = await parse("must=x", post("abc", "application/x-bittorrent")) as { file: File };
  assertEquals(await bare.file.text(), "abc");
  assertEquals((await parse("must=x", post("123456789", "application/octet-stream")) as unknown[])[0], 3);
  assertEquals((await parse("must=x", post("no parts", "multipart/form-data; boundary=b")) as unknown[])[0], 3);
  assertEquals((await parse("must=x", post("no boundary", "multipart/form-data")) as unknown[])[0], 3);
});

test("readInput() accepts a JSON object whose members are strings as in a query or values of their type", async () => {
  const json = (value: unknown, type = "application/json") => ({
    method: "POST",
    body: typeof value === "string" ? value : JSON.stringify(value),
    headers: { "content-type": type },
  });
  const table: [unknown, Record<string, unknown>][] = [
    [{ must: "x", id: 4, value: true, title: null }, { must: "x", id: 4, value: true }],
    [{ must: "x", id: "4", value: "0", ids: "1,2" }, { must: "x", id: 4, value: false, ids: [1, 2] }],
    [{ must: "x", ids: [1, "2"], query: ["a,b", ""] }, { must: "x", ids: [1, 2], query: ["a,b", ""] }],
    [{ must: "x", tags: ["x", "y"], other: [] }, { must: "x", tags: ["x", "y"] }],
    [{ must: "x", tags: '["x"]' }, { must: "x", tags: ["x"] }],
    ['{"must":"x","__proto__":"y","constructor":"z"}', { must: "x" }],
  ];
  for (const [value, expected] of table) assertEquals(await parse("", json(value)), expected, JSON.stringify(value));
  const query = await parse("must=query&ids=3", json({ must: "body", ids: [1] }, "Application/JSON; charset=utf-8"));
  assertEquals(query, { must: "query", ids: [3] });
  const refused: [unknown, string][] = [
    ["", "missing parameter: must"],
    ["nonsense", "invalid parameter: the body is no JSON object"],
    ["[1]", "invalid parameter: the body is no JSON object"],
    ["null", "invalid parameter: the body is no JSON object"],
    ["[".repeat(500_000), "invalid parameter: the body is no JSON object"],
    [{ must: {} }, "invalid parameter: must: a text, a number, true or false, or a list of these is expected"],
    [{ ids: [[1]] }, "invalid parameter: ids: a text, a number, true or false, or a list of these is expected"],
    [{ must: ["x"] }, "invalid parameter: must: one value is expected, and no list"],
    [{ must: "x", ids: [1, 1.5] }, "invalid parameter: ids: an integer is expected"],
    [{ must: "x", tags: [1, 2, 3, 4] }, "invalid parameter: tags: at most 3 values"],
  ];
  for (const [value, message] of refused) {
    assertEquals((await parse("", json(value)) as unknown[])[1], message, String(value).slice(0, 40));
  }
});

test("readInput() refuses input over a limit with 413", async () => {
  const body = (bytes: number, type: string) => ({
    method: "POST",
    body: new Uint8Array(bytes).fill(97),
    headers: { "content-type": type },
  });
  const table: [string, RequestInit | undefined][] = [
    [`must=${"x".repeat(65_537)}`, undefined],
    [`must=x${"&a=1".repeat(10_000)}`, undefined],
    ["must=x", body(1024 * 1024 + 1, "application/x-www-form-urlencoded")],
    ["must=x", body(1024 * 1024 + 1, "application/json")],
    ["must=x", { ...body(0, "application/json"), body: JSON.stringify({ ids: ["1", "1".repeat(65_537)] }) }],
    ["must=x", body(17 * 1024 * 1024 + 1, "application/octet-stream")],
  ];
  for (const [query, init] of table) {
    const failed = await parse(query, init) as [number, string, number];
    assertEquals([failed[0], failed[2]], [3, 413], query.slice(0, 20));
  }
});

test("parameters of random text never raise anything but an ApiError", async () => {
  const random = seededBelow(7);
  const names = ["id", "value", "ids", "query", "tags", "mode", "title", "must", "__proto__", "method", "%", "\0"];
  const bits = [
    "1",
    "-",
    ",",
    "[",
    "]",
    "{",
    '"',
    "\\u0000",
    "%00",
    "é",
    "\r\n",
    "true",
    "NaN",
    " ",
    "1e9",
    "'; --",
    "=",
    "&",
  ];
  for (let round = 0; round < 500; round++) {
    let query = "";
    for (let i = random(8); i >= 0; i--) {
      let value = "";
      for (let j = random(6); j > 0; j--) value += bits[random(bits.length)];
      const name = names[random(names.length)]!;
      query += random(3) === 0 ? `${name}=${value}&` : `${encodeURIComponent(name)}=${encodeURIComponent(value)}&`;
    }
    const isForm = random(4) === 0;
    await (isForm
      ? parse("", { method: "POST", body: query, headers: { "content-type": "application/x-www-form-urlencoded" } })
      : parse(query.replaceAll("#", "")));
  }
});
