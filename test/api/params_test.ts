import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { z } from "zod";
import { ApiError } from "../../src/http/api/codes.ts";
import { readOwnInput } from "../http/read-input.ts";
import { defineMethod } from "../../src/http/api/method.ts";
import { jsonList, paramReader } from "../../src/http/api/params.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { seededBelow } from "../support/random.ts";

const read = paramReader(defineMethod({
  name: "probe",
  summary: "Every kind of parameter.",
  public: true,
  remote: true,
  params: z.object({
    id: z.int().optional(),
    value: z.boolean().optional(),
    ids: z.array(z.int()).max(4).optional(),
    query: z.array(z.string()).optional(),
    tags: jsonList(3, 10).optional(),
    mode: z.enum(["brief", "full"]).optional(),
    title: z.string().max(5).optional(),
    file: z.file().max(8).optional(),
    must: z.string(),
  }),
  result: z.literal("ok"),
  handle: () => "ok" as const,
}));

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
    ["value=0", { value: false }],
    ["value=false", { value: false }],
    ["value=False", { value: false }],
    ["value=", {}],
    ["id=-7", { id: -7 }],
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

test("paramReader() names what is missing or wrong", async () => {
  const table: [string, number, string][] = [
    ["", 2, "must"],
    ["must=x&value=yes", 3, "value"],
    ["must=x&value=2", 3, "value"],
    ["must=x&id=1.5", 3, "id"],
    ["must=x&id=99999999999999999999", 3, "id"],
    ["must=x&id=0x10", 3, "id"],
    ["must=x&ids=1,b", 3, "ids"],
    ["must=x&ids=1,2,3,4,5", 3, "ids"],
    ["must=x&tags=%5B1%5D", 3, "tags"],
    ["must=x&tags=nonsense", 3, "tags"],
    ["must=x&tags=%7B%7D", 3, "tags"],
    ["must=x&mode=half", 3, "mode"],
    ["must=x&title=toolong", 3, "title"],
    ["must=x&title=a%00b", 3, "title"],
  ];
  for (const [query, code, name] of table) {
    const failed = await parse(query) as [number, string, number];
    assertEquals([failed[0], failed[2]], [code, 200], query);
    assert(failed[1].includes(name), failed[1]);
  }
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

test("readInput() refuses what is over a limit with 413", async () => {
  const body = (bytes: number, type: string) => ({
    method: "POST",
    body: new Uint8Array(bytes).fill(97),
    headers: { "content-type": type },
  });
  const table: [string, RequestInit | undefined][] = [
    [`must=${"x".repeat(65_537)}`, undefined],
    [`must=x${"&a=1".repeat(10_000)}`, undefined],
    ["must=x", body(1024 * 1024 + 1, "application/x-www-form-urlencoded")],
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
