import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { concatBytes } from "../../src/bytes/hex.ts";
import { isKnownMedia } from "../../src/bytes/known-media.ts";
import { clip } from "../support/fixtures.ts";
import { noise } from "../support/random.ts";

const bytes = (text: string) => Uint8Array.from(text, (c) => c.charCodeAt(0));
const isKnown = (file: Uint8Array) => isKnownMedia((at, length) => Promise.resolve(file.subarray(at, at + length)));
/** An ID3v2 tag of this version around `content`. */
const tagged = (content: Uint8Array, version = 4) =>
  concatBytes([
    bytes(`ID3${String.fromCharCode(version)}\0\0\0\0`),
    Uint8Array.of(content.length >> 7, content.length & 0x7f),
    content,
  ]);
/** Packets of a transport stream, or frames of MPEG audio, that hold nothing. */
const PACKETS = concatBytes(
  Array.from({ length: 60 }, () => concatBytes([Uint8Array.of(0x47, 0x1f, 0xff, 0x10), noise(184)])),
);
const FRAMES = concatBytes(
  Array.from({ length: 20 }, () => concatBytes([Uint8Array.of(0xff, 0xfb, 0x90, 0x64), new Uint8Array(413)])),
);
const LIST = bytes("#EXTM3U\n#EXTINF:4,\nhttp://192.168.1.1/a.ts\n");

test("isKnownMedia() takes films and sound of all kinds, tagged or cut", async () => {
  const files: Record<string, Uint8Array> = {
    mp4: clip("mp4-end.mp4"),
    mkv: clip("mkv-cues.mkv"),
    ts: PACKETS,
    "ts that begins within a packet": PACKETS.subarray(70),
    m2ts: concatBytes(
      Array.from(
        { length: 60 },
        (_, i) => concatBytes([Uint8Array.of(0x21, 0x22, 0x23, i), PACKETS.subarray(188 * i, 188 * i + 188)]),
      ),
    ),
    mp3: FRAMES,
    "mp3 with tags": concatBytes([tagged(noise(9000)), tagged(noise(50)), FRAMES]),
    avi: bytes("RIFFabcdAVI LIST"),
    wav: bytes("RIFFabcdWAVEfmt "),
    flac: bytes("fLaC\0\0\0\x22"),
    ogg: bytes("OggS\0\x02"),
  };
  for (const [name, file] of Object.entries(files)) assertEquals(await isKnown(file), true, name);
});

test("isKnownMedia() takes no playlist, plain, after a tag or before media, and nothing unknown", async () => {
  const padded = concatBytes([LIST, bytes("#".repeat(120 - LIST.length))]);
  const files: Record<string, Uint8Array> = {
    empty: new Uint8Array(),
    m3u: LIST,
    pls: bytes("[playlist]\nFile1=http://192.168.1.1/\n"),
    asx: bytes("<asx version='3.0'><entry><ref href='http://192.168.1.1/'/></entry></asx>"),
    mpd: bytes("<?xml version='1.0'?><MPD profiles='urn:mpeg:dash:profile:isoff-main:2011'/>"),
    concat: bytes("ffconcat version 1.0\nfile http://192.168.1.1/\n"),
    edl: bytes("# mpv EDL v0\nhttp://192.168.1.1/\n"),
    addresses: bytes("http://192.168.1.1/\n"),
    noise: noise(5000).fill(0x2a, 0, 8),
    "m3u after a tag": concatBytes([tagged(noise(20)), LIST]),
    "m3u after a long tag": concatBytes([tagged(noise(9000)), LIST]),
    "m3u after many tags": concatBytes([...Array.from({ length: 9 }, () => tagged(noise(20))), LIST, FRAMES]),
    "m3u after a tag of an unknown version": concatBytes([tagged(noise(20), 5), LIST, FRAMES]),
    "m3u before packets": concatBytes([padded, PACKETS]),
    "m3u before frames": concatBytes([padded, FRAMES]),
    "m3u with a mark before frames": concatBytes([Uint8Array.of(0xef, 0xbb, 0xbf), padded, FRAMES]),
    "a tag alone": tagged(noise(100)),
  };
  for (const [name, file] of Object.entries(files)) assertEquals(await isKnown(file), false, name);
});
