import { test } from "node:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { hasCode, MillraceError } from "../../src/errors.ts";
import { iso639Code, sameLanguage } from "../../src/media/model/language.ts";
import { FMP4 } from "../../src/media/mux/carrier.ts";
import { selectTracks } from "../../src/media/presentation/select.ts";
import { sniffContainer } from "../../src/bytes/container.ts";
import type { Track } from "../../src/media/model/types.ts";

function audio(id: number, language: string | null, isDefault = false, codec: Track["codec"] = "mp3"): Track {
  return {
    id,
    kind: "audio",
    codec,
    codecId: codec,
    language,
    isDefault,
    codecPrivate: null,
    width: null,
    height: null,
    sampleRate: 48000,
    channels: 2,
  };
}

const all = () => true;

test("selectTracks() puts the preferred language first, then the default track", () => {
  const tracks = [audio(1, "eng"), audio(2, "ger"), audio(3, "fre", true)];
  const order = (wish: string | null) => selectTracks(tracks, wish, all).indexes.map((index) => tracks[index]!.id);
  assertEquals(order(null), [3, 1, 2]);
  assertEquals(order("de"), [2, 3, 1]);
  assertEquals(order("jpn, deu-AT ,en"), [2, 1, 3]);
  assertEquals(order("fra"), [3, 1, 2]);
  assertEquals(order("zz"), [3, 1, 2]);
});

test("selectTracks() leaves out what cannot be carried, with a warning", () => {
  const video: Track = { ...audio(1, null), kind: "video", codec: "mpeg2video" };
  const { indexes, warnings } = selectTracks([video, audio(2, null, true, "opus")], null, all);
  assertEquals(indexes, [0]);
  assert(warnings.length === 1 && warnings[0]!.includes("opus"));
});

test("selectTracks() throws unsupported_media naming the codecs when nothing is left", () => {
  const other: Track = { ...audio(1, null), kind: "video", codec: "other", codecId: "encv" };
  const error = assertThrows(() => selectTracks([other, audio(2, null, true, "dts")], null, all), MillraceError);
  assert(hasCode(error, "unsupported_media"));
  assert(error.message.includes("encv") && error.message.includes("dts"));
  assert(hasCode(assertThrows(() => selectTracks([], null, all), MillraceError), "bad_media"));
});

test("selectTracks() of fragmented MP4 takes AC-3 if nothing else is there, or its language was asked for", () => {
  const dolby = (id: number, language: string, isDefault: boolean) => ({
    ...audio(id, language, isDefault, "ac3"),
    codecPrivate: Uint8Array.of(0x10, 0x3d, 0xe0),
  });
  const aac = (id: number, language: string) => ({
    ...audio(id, language, false, "aac"),
    codecPrivate: Uint8Array.of(0x11, 0x90),
  });
  const both = [dolby(1, "eng", true), aac(2, "ger")];
  const first = (tracks: readonly Track[], wish: string | null) =>
    tracks[selectTracks(tracks, wish, all, "", FMP4).indexes[0]!]!.id;
  assertEquals([first(both, null), first(both, "fr"), first(both, "en"), first([both[0]!], null)], [2, 2, 1, 1]);
});

test("selectTracks() carries one video track, the default one", () => {
  const video = (id: number, isDefault: boolean): Track => ({
    ...audio(id, null, isDefault),
    kind: "video",
    codec: "mpeg2video",
  });
  const { indexes, warnings } = selectTracks([video(1, false), video(2, true)], null, all);
  assertEquals(indexes, [1]);
  assertEquals(warnings.length, 1);
});

test("iso639Code() and sameLanguage() know both alphabets and both notations", () => {
  assertEquals(iso639Code("en"), "eng");
  assertEquals(iso639Code("pt-BR"), "por");
  assertEquals(iso639Code("ger"), "ger");
  assertEquals(iso639Code("und"), null);
  assertEquals(iso639Code("q"), null);
  assert(sameLanguage("ger", "de-AT") && sameLanguage("fre", "fra") && !sameLanguage("en", "de"));
  assert(!sameLanguage(null, null));
});

test("sniffContainer() recognises containers by their bytes", () => {
  const bytes = (...values: number[]) => Uint8Array.from(values);
  const ts = (packet: number, first: number) => {
    const head = new Uint8Array(4096);
    for (let at = first; at < head.length; at += packet) head[at] = 0x47;
    return head;
  };
  assertEquals(sniffContainer(bytes(0, 0, 0, 24, 0x66, 0x74, 0x79, 0x70)), "mp4");
  assertEquals(sniffContainer(bytes(0x1a, 0x45, 0xdf, 0xa3, 0, 0, 0, 0)), "matroska");
  for (const [packet, first] of [[188, 0], [192, 4], [204, 0], [188, 100]] as const) {
    assertEquals(sniffContainer(ts(packet, first)), "mpegts");
  }
  assertEquals(sniffContainer(new Uint8Array(4096)), null);
  assertEquals(sniffContainer(new Uint8Array(4096).fill(0x46)), null);
  assertEquals(sniffContainer(bytes()), null);
});
