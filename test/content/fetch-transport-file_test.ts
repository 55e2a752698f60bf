import { readFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { assertEquals, assertRejects } from "@std/assert";
import { fetchTransportFile } from "../../src/content/fetch-transport-file.ts";
import { MillraceError } from "../../src/errors.ts";
import { fakeWeb } from "../support/fake-web.ts";

const FILE = new Uint8Array(readFileSync(new URL("../fixtures/single.torrent", import.meta.url)));
const MAGNET = `magnet:?xt=urn:btih:${"a".repeat(40)}&dn=a&tr=http%3A%2F%2Ft.example%2Fannounce`;
const never = new AbortController().signal;

const moved = (to: string) => () => new Response(null, { status: 302, headers: { location: to } });

const { ports } = fakeWeb({
  "http://a.example/plain": () => new Response(FILE),
  "http://a.example/packed.torrent.gz": () => new Response(new Uint8Array(gzipSync(FILE))),
  "http://a.example/link": moved(MAGNET),
  "http://a.example/twice": moved("/link"),
  "http://a.example/text": () => new Response(`\n${MAGNET}\n`, { headers: { "content-type": "text/plain" } }),
  "http://a.example/page": () =>
    new Response(`<html><a href="${MAGNET}">`, { headers: { "content-type": "text/html" } }),
  "http://a.example/packed-page": () => new Response(new Uint8Array(gzipSync("<html>"))),
  "http://a.example/mail": moved("mailto:a@b.example"),
});
const fetched = (path: string) => fetchTransportFile(ports, `http://a.example/${path}`, false, never);

test("fetchTransportFile() returns a transport file, packed or not", async () => {
  for (const path of ["plain", "packed.torrent.gz"]) {
    assertEquals(await fetched(path), { bytes: FILE, isPublic: true }, path);
  }
});

test("fetchTransportFile() returns the magnet link that an address redirects to or holds", async () => {
  for (const path of ["link", "twice", "text"]) {
    assertEquals(await fetched(path), { magnet: MAGNET, isPublic: true }, path);
  }
});

test("fetchTransportFile() throws when an address leads to anything else", async () => {
  for (
    const [path, code] of [["page", "bad_transport_file"], ["packed-page", "bad_transport_file"], [
      "mail",
      "invalid_argument",
    ]]
  ) {
    assertEquals((await assertRejects(() => fetched(path!), MillraceError)).code, code, path);
  }
});
