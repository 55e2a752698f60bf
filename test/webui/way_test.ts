/** Which output of the engine a browser plays of a film. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { type ApiTrack, type Lacks, LACKS_NOTHING, missingCodecs } from "../../src/webui/codecs.ts";
import { fileType, wayOf } from "../../src/webui/way.ts";

const track = (kind: "video" | "audio", codec: string, codecs: string | null = null): ApiTrack => ({
  ...{ kind, codec, codecs, language: null, width: null, height: null },
});
const H264 = track("video", "h264", "avc1.64001f");
const HEVC = track("video", "hevc", "hvc1.2.4.L120.90");
const AAC = track("audio", "aac", "mp4a.40.2");
const VORBIS = track("audio", "vorbis");

test("missingCodecs() names what a browser lacks, and none of a kind with a playable track or one that nobody knows", async () => {
  const asked: string[] = [];
  const lacks = (tracks: readonly ApiTrack[]) =>
    missingCodecs(tracks, (type) => {
      asked.push(type);
      return Promise.resolve(/avc1|mp4a\.40\.2/.test(type));
    });
  const film = [HEVC, track("audio", "ac3"), track("audio", "eac3", "ec-3")];
  const sound = "Dolby Digital (AC-3), Dolby Digital Plus (E-AC-3)";
  assertEquals(await lacks(film), { picture: "HEVC (H.265)", sound });
  assertEquals(asked, [
    'video/mp4; codecs="hvc1.2.4.L120.90"',
    'audio/mp4; codecs="ac-3"',
    'audio/mp4; codecs="ec-3"',
  ]);
  assertEquals(await lacks([...film, H264, AAC]), LACKS_NOTHING);
  assertEquals(await lacks([track("video", "av1"), track("audio", "opus")]), { picture: "AV1", sound: "Opus" });
  assertEquals(await lacks([]), LACKS_NOTHING);
  assertEquals(await lacks([track("video", "other")]), LACKS_NOTHING);
});

const NO_SOUND: Lacks = { picture: "", sound: "DTS" };
const NO_PICTURE: Lacks = { picture: "HEVC", sound: "" };
/** A film that is made of `sourceTracks`. */
const film = (tracks: readonly ApiTrack[], sourceTracks = tracks, isRefused = false) => ({
  ...{ tracks, sourceTracks, isRefused },
});
const able = (lacks: Lacks, playsFile: boolean, playsHls = true) => ({ lacks, playsFile, playsHls });

test("wayOf() takes HLS, then AAC, then the file itself, and none where the pictures cannot be decoded", () => {
  const whole = film([H264, AAC]);
  assertEquals(wayOf(whole, able(LACKS_NOTHING, true), null), "hls");
  assertEquals(wayOf(whole, able(NO_SOUND, true), null), "aac");
  assertEquals(wayOf(whole, able(NO_SOUND, true), true), "file");
  assertEquals(wayOf(whole, able(NO_SOUND, false), true), "hls");
  assertEquals(wayOf(whole, able(NO_SOUND, true), false), "hls");
  assertEquals(wayOf(whole, able(NO_PICTURE, true), null), "file");
  assertEquals(wayOf(whole, able(NO_PICTURE, false), null), "none");
  assertEquals(wayOf(whole, able(LACKS_NOTHING, true, false), null), "file");
  // Its sound was left out of the output.
  const mute = film([H264], [H264, VORBIS]);
  assertEquals(wayOf(mute, able(LACKS_NOTHING, true), null), "aac");
  assertEquals(wayOf(mute, able(LACKS_NOTHING, true), true), "file");
  const silent = film([H264]);
  assertEquals(wayOf(silent, able(LACKS_NOTHING, true), null), "hls");
  const refused = film([], [], true);
  assertEquals(wayOf(refused, able(LACKS_NOTHING, true), null), "file");
  assertEquals(wayOf(refused, able(LACKS_NOTHING, false), null), "none");
});

test("fileType() names a file by its first picture and sound, and asks nobody for what browsers never have", () => {
  assertEquals(fileType("A.b.MKV", [H264, VORBIS, AAC]), 'video/x-matroska; codecs="avc1.64001f, vorbis"');
  assertEquals(fileType("a.mkv", [H264, track("audio", "pcm")]), 'video/x-matroska; codecs="avc1.64001f"');
  assertEquals(fileType("a.mkv", [H264, track("audio", "dts")]), null);
  assertEquals(fileType("a.webm", []), "video/webm");
  assertEquals(fileType("a.avi", [H264]), null);
  assertEquals(fileType("mkv", []), null);
});
