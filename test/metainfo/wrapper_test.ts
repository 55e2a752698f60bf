import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { contentId } from "../../src/metainfo/content-id.ts";
import { parseAnyTransportFile } from "../../src/metainfo/live.ts";
import { createWrapper, encodeWrapper, isWrapperFile, parseWrapper } from "../../src/metainfo/wrapper.ts";
import { seededBelow } from "../support/random.ts";

const CONTENT = {
  url: "https://a.example/x.m3u8?a=1",
  name: "Äx",
  isLive: 1,
  mime: "video/mp2t",
  sizeBytes: 7,
} as const;
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const bytes = (value: string) => new TextEncoder().encode(value);

test("createWrapper() gives a URL the same infohash, whatever else is known about it", async () => {
  const one = await createWrapper(CONTENT);
  const other = await createWrapper({ ...CONTENT, name: "y", isLive: -1, sizeBytes: 0 });
  assertEquals(one.infohashHex, other.infohashHex);
  assert(one.infohashHex !== (await createWrapper({ ...CONTENT, url: "https://a.example/" })).infohashHex);
  const info = "d7:wrapperd3:url28:https://a.example/x.m3u8?a=11:vi1eee";
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-1", bytes(info)));
  assertEquals(one.infohash, hash);
  assert(text(encodeWrapper(one)).includes(`4:info${info}`));
});

test("parseWrapper() reads back what encodeWrapper() wrote, ids included", async () => {
  for (const isLive of [-1, 0, 1] as const) {
    const wrapper = await createWrapper({ ...CONTENT, isLive });
    const file = encodeWrapper(wrapper);
    const read = await parseWrapper(file);
    assertEquals(read, wrapper);
    assertEquals(await contentId(read), await contentId(wrapper));
    assert(isWrapperFile(file));
    await assertRejects(() => parseAnyTransportFile(file), MillraceError);
  }
});

test("createWrapper() refuses URLs that are not HTTP, and repairs odd fields", async () => {
  for (const url of ["", "ftp://a/", "http://", "javascript:x", `http://a/${"x".repeat(9000)}`, "file:///etc/passwd"]) {
    const error = await assertRejects(() => createWrapper({ ...CONTENT, url }), MillraceError);
    assertEquals(error.code, "invalid_argument");
  }
  const odd = await createWrapper({
    ...CONTENT,
    mime: "a\r\nb",
    sizeBytes: Number.POSITIVE_INFINITY,
    name: "x".repeat(999),
  });
  assertEquals([odd.mime, odd.sizeBytes, odd.name.length], ["application/octet-stream", 0, 500]);
});

test("parseWrapper() and isWrapperFile() survive anything", async () => {
  const whole = encodeWrapper(await createWrapper(CONTENT));
  const malformed = [
    "",
    "d",
    "d4:infod7:wrapperleee",
    "d4:infod7:wrapperd1:vi2e3:url9:http://a/eee",
    "d4:infod7:wrapperd3:url9:http://a/eee",
    "d4:infod7:wrapperd3:url8:ftp://a/1:vi1eeee",
  ];
  for (const file of malformed) {
    const error = await assertRejects(() => parseWrapper(bytes(file)), MillraceError);
    assertEquals(error.code, "bad_transport_file", file);
  }
  const random = seededBelow(3);
  for (let round = 0; round < 500; round++) {
    const file = whole.slice(0, random(whole.length + 1));
    if (file.length > 0) file[random(file.length)] = random(256);
    isWrapperFile(file);
    await parseWrapper(file).catch((error) => assert(error instanceof MillraceError, String(error)));
  }
});
