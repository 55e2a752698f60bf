/** Files packed with xz: whole, joined, in pieces, damaged, of others that wait. */
import { test } from "node:test";
import { assertEquals, assertLess, assertRejects } from "@std/assert";
import { isXz, unxzed } from "../../src/bytes/unxz.ts";
import { MillraceError } from "../../src/errors.ts";
import { settle } from "../support/fake-clock.ts";

const TEXT = '<tv><programme start="20261127010000" channel="a"><title>Eins</title></programme></tv>';

/** By `xz`, which no runtime has. */
const bytes = (base64: string) => new Uint8Array(Buffer.from(base64, "base64"));
const ONE = bytes(
  "/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj4ABVAEpdAB4dCsPg9/m4Aa1dKgUdy5ajn4Ot2n+cswYGromNgjlP84Ytc+2GBkNZ" +
    "UnF3Wjs+sO3W2Ezv8Is6oe1Zzk2I2TEGPW8e90aA/YbHAAAAaK3f/Bxz/gMAAWZWy40pkR+2830BAAAAAARZWg==",
);
/** Two streams, one with another check, and zeros after them. */
const TWO = bytes(
  "/Td6WFoAAATm1rRGAgAhARYAAAB0L+WjAQAnPHR2Pjxwcm9ncmFtbWUgc3RhcnQ9IjIwMjYxMTI3MDEwMDAwIiBjaABBiwi0" +
    "4te1ewABQCjUUkrlH7bzfQEAAAAABFla/Td6WFoAAAFpIt42AgAhARYAAAB0L+Wj4AAtACtdADCbrMpuVAw9Fg0AqCX2UnNi" +
    "gjTW6h1gponEjGe1SgEx9RC5a8Iw9GBffgkAABoObPQAAUMuIqQEJ5BCmQ0BAAAAAAFZWgAAAAA=",
);
/** A head that asks for a dictionary of 128 MiB. */
const DICTIONARY = bytes(
  "/Td6WFoAAATm1rRGAgAhAR4AAACbB1Fm4ABVAEpdAB4dCsPg9/m4Aa1dKgUdy5ajn4Ot2n+cswYGromNgjlP84Ytc+2GBkNZ" +
    "UnF3Wjs+sO3W2Ezv8Is6oe1Zzk2I2TEGPW8e90aA/YbHAAAAaK3f/Bxz/gMAAWZWy40pkR+2830BAAAAAARZWg==",
);
/** Its check is SHA-256. */
const SHA256 = bytes(
  "/Td6WFoAAArh+wyhAgAhARYAAAB0L+Wj4ABVAEpdAB4dCsPg9/m4Aa1dKgUdy5ajn4Ot2n+cswYGromNgjlP84Ytc+2GBkNZ" +
    "UnF3Wjs+sO3W2Ezv8Is6oe1Zzk2I2TEGPW8e90aA/YbHAAAAu8qhXQPRy5yrHPF/TrssAJeJ+lqBVQ8Uf0HwaCcZ78oAAX5W" +
    "khUyExibS5oBAAAAAApZWg==",
);
/** 3,000,000 line feeds. */
const LINES = bytes(
  "/Td6WFoAAATm1rRGAgAhAQwAAACPmEGc//8RAWxdAAVv+7/+o7Fe5fg/sqomVfhocEFwFQ+N/R5MG4pCtxn0aRhxrmYjiopN" +
    "L6MN2X+m44wjEVPgWRjFdYrid/i2lH8MasDedElk4ulcU7IE2PdEDKtfDW1G6eXDdoi3llestk3haR1v+0uIEGxCy4g/XACP" +
    "0E6vJiiUcR89jyThcJ6nI1/sKMuF0ZWYin4qkfIndfcZwAaYTZj92K/VkA/EJVP49ZE2MQWlsO5vwXBNRwzRkRGqrWAdus6x" +
    "JxhcWYbpZlJYvul2rFnk5VsFCPnH2q38+1IrdM0eWyBC+d1TPfgpZAk7gMsqbN+1O/DEvS5fqg8+S2ZCkBMO/xCT+HF4WfgL" +
    "zf+VKEYPqfx83vuaMC5WwI+F84OBwGXEJVP49ZE2MQWlsO5vwXBNRwzRkRGqrWAdus6xJxhcWYbpZlJYvul2rFnk5VsFCPnH" +
    "2q38+1IrdM0eWyBC+d1TPfgpZAk7gMsqbN+1O/DEvEgn5liNx60AhADsc1On/b6ufDEan7eNMW5wnqcjX+woy4XRlZiKfiqR" +
    "8id19xnABphNmP3Yr9WQD8QlU/j1kTYxBaWw7m/BcE1HDNGREaqtYB26zrEnGFxZhulmUli+6XasWeTlWwUI+cfarfz7Uit0" +
    "zR5bIEL53VM9+ClkCTuAyyps37U78MS9FHktXQAAAAAFYcuEGrkjzQABkgTAjbcBaatYJbHEZ/sCAAAAAARZWg==",
);

const failed = () => new Error("damaged");

/** `whole` in chunks of `size`, as a stream that calls `onCancel`. */
function stream(whole: Uint8Array, size = 1000, onCancel = () => {}): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      const chunk = whole.slice(at, at + size);
      at += size;
      if (chunk.length > 0) controller.enqueue(chunk);
      else controller.close();
    },
    cancel: onCancel,
  }, { highWaterMark: 0 });
}

async function read(body: ReadableStream<Uint8Array>): Promise<Uint8Array[]> {
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  for (let part = await reader.read(); !part.done; part = await reader.read()) chunks.push(part.value);
  return chunks;
}

const text = async (body: ReadableStream<Uint8Array>) => Buffer.concat(await read(body)).toString();

test("isXz() knows xz by its first bytes", () => {
  assertEquals([isXz(ONE), isXz(ONE.subarray(0, 2)), isXz(ONE.subarray(0, 1))], [true, true, false]);
  assertEquals(isXz(new TextEncoder().encode("#EXTM3U")), false);
});

test("unxzed() decompresses xz from chunks of any size, all streams of it", async () => {
  for (const size of [1, 7, 64, 1000]) {
    assertEquals(await text(unxzed(stream(ONE, size), failed)), TEXT, `${size}`);
    assertEquals(await text(unxzed(stream(TWO, size), failed)), TEXT, `${size}`);
  }
  const empty = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const part of [[], ONE.subarray(0, 50), [], ONE.subarray(50), []]) controller.enqueue(new Uint8Array(part));
      controller.close();
    },
  });
  assertEquals(await text(unxzed(empty, failed)), TEXT);
});

test("unxzed() yields chunks of at most 64 KiB of what a few bytes unpack to", async () => {
  const chunks = await read(unxzed(stream(LINES), failed));
  assertEquals(chunks.reduce((sum, { length }) => sum + length, 0), 3_000_000);
  for (const { length } of chunks) assertLess(length, 65_537);
});

test("unxzed() refuses what is damaged, cut, or not to be read, and frees the decoder for others", async () => {
  const turned = Uint8Array.from(ONE, (byte, at) => at === 60 ? byte ^ 1 : byte);
  for (const bad of [turned, ONE.subarray(0, -20), ONE.subarray(0, 6), new Uint8Array(), DICTIONARY, SHA256]) {
    await assertRejects(() => read(unxzed(stream(bad), failed)), Error, "damaged");
    assertEquals(await text(unxzed(stream(ONE), failed)), TEXT);
  }
});

test("unxzed() passes on what its source fails with", async () => {
  let isFirst = true;
  const breaking = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (!isFirst) throw new Error("the line broke");
      isFirst = false;
      controller.enqueue(ONE.slice(0, 30));
    },
  }, { highWaterMark: 0 });
  await assertRejects(() => read(unxzed(breaking, failed)), Error, "the line broke");
});

test("unxzed() reads one file at a time; the others wait until it ends, is left, or their signal fires", async () => {
  const first = unxzed(stream(LINES), failed).getReader();
  assertEquals((await first.read()).done, false);
  let hasBegun = false;
  const second = text(unxzed(stream(ONE), failed)).then((plain) => {
    hasBegun = true;
    return plain;
  });
  const control = new AbortController();
  const third = assertRejects(() => text(unxzed(stream(ONE), failed, control.signal)), Error, "not wanted");
  let isLeft = false;
  const fourth = unxzed(stream(ONE, 9, () => isLeft = true), failed).getReader();
  const waiting = fourth.read();
  await settle();
  control.abort(new MillraceError("aborted", "not wanted"));
  await third;
  await fourth.cancel();
  assertEquals([(await waiting).done, isLeft, hasBegun], [true, true, false]);
  await first.cancel();
  assertEquals([await second, hasBegun], [TEXT, true]);
  assertEquals(await text(unxzed(stream(TWO), failed)), TEXT);
});
