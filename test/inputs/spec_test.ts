import { test } from "node:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { describeSource, describeUrl, isAwaited, parseSource, withoutSecrets } from "../../src/inputs/spec.ts";

const MULTICAST = { kind: "udp", isMulticast: true, interfaceAddress: null };

test("parseSource() recognises each kind of source", () => {
  const table: [string, unknown][] = [
    ["-", { kind: "stdin" }],
    ["clip.ts", { kind: "file", path: "clip.ts" }],
    ["/a b/clip.mp4", { kind: "file", path: "/a b/clip.mp4" }],
    ["file:///a%20b/clip.ts", { kind: "file", path: "/a b/clip.ts" }],
    ["file:///C:/clip.ts", { kind: "file", path: "C:/clip.ts" }],
    ["http://h:8080/s?key=1", { kind: "http", url: "http://h:8080/s?key=1" }],
    ["HTTPS://h/s.m3u8", { kind: "http", url: "HTTPS://h/s.m3u8" }],
    ["udp://239.1.2.3:1234", { ...MULTICAST, host: "239.1.2.3", port: 1234 }],
    ["udp://@239.1.2.3:1234/", { ...MULTICAST, host: "239.1.2.3", port: 1234 }],
    ["udp://239.1.2.3:1234?localaddr=10.0.0.1&ttl=2", {
      ...MULTICAST,
      host: "239.1.2.3",
      port: 1234,
      interfaceAddress: "10.0.0.1",
    }],
    ["udp://[ff15::1]:1234", { ...MULTICAST, host: "ff15::1", port: 1234 }],
    ["udp://:1234", { ...MULTICAST, isMulticast: false, host: "0.0.0.0", port: 1234 }],
    ["udp://@:1234", { ...MULTICAST, isMulticast: false, host: "0.0.0.0", port: 1234 }],
    ["rtp://localhost:5004", { ...MULTICAST, kind: "rtp", isMulticast: false, host: "127.0.0.1", port: 5004 }],
    ["rtmp://h/app/key", { kind: "ffmpeg", url: "rtmp://h/app/key" }],
    ["srt://h:9000?mode=caller", { kind: "ffmpeg", url: "srt://h:9000?mode=caller" }],
    ["rtsp://user:word@h/1", { kind: "ffmpeg", url: "rtsp://user:word@h/1" }],
    ["ffmpeg:https://h/fmp4.m3u8", { kind: "ffmpeg", url: "https://h/fmp4.m3u8" }],
  ];
  for (const [text, spec] of table) assertEquals(parseSource(text), spec as never, text);
});

test("parseSource() reports errors in one line", () => {
  const table: [string, string][] = [
    ["", "--source needs an address, a file or - for standard input"],
    ["udp://239.1.2.3", "--source needs udp://address:port"],
    ["udp://239.1.2.3:0", "--source needs udp://address:port"],
    ["rtp://239.1.2.3:70000", "--source needs rtp://address:port"],
    ["udp://example.org:1234", "--source needs a literal address in udp://address:port, the one to listen on"],
    ["udp://239.1.2.3:1234?localaddr=eth0", "--source needs a literal address in localaddr"],
    ["http://", "--source is no valid http address"],
    ["file://server/share/clip.ts", "--source names a file on another machine; mount it"],
    ["x".repeat(5000), "--source needs an address, a file or - for standard input"],
  ];
  for (const [text, message] of table) {
    const error = assertThrows(() => parseSource(text), MillraceError);
    assertEquals([(error as MillraceError).code, (error as Error).message], ["config", message]);
  }
});

test("describeSource() and withoutSecrets() keep passwords and keys out of logs", () => {
  for (const text of ["http://user:word@h/s?key=word", "rtsp://user:word@h/1", "srt://h:9?passphrase=word"]) {
    assert(!describeSource(parseSource(text)).includes("word"), text);
    const message = withoutSecrets(`${text}: Connection refused; http://user:word@other/`, text);
    assert(!message.includes("word"), message);
    assert(message.includes("Connection refused"));
  }
  assertEquals(describeSource(parseSource("rtp://[ff15::1]:5004")), "rtp://[ff15::1]:5004");
  assertEquals(describeUrl("http://u:p@h/a@b"), "http://h/a@b");
});

test("isAwaited() knows the sources that somebody has to send to", () => {
  const awaited = [
    "udp://127.0.0.1:5000",
    "rtp://@239.1.2.3:5000",
    "rtmp://h/live/k?listen=1",
    "rtsp://h/live?listen=1",
    "srt://h:1?mode=listener",
    "srt://:1?passphrase=0123456789",
  ];
  const fetched = [
    ...["-", "a.ts", "https://h/a.ts", "rtmp://h/live/k", "srt://h:1?mode=caller", "srt://:1?mode=caller"],
    ...["ffmpeg:rtsp://h/a", "rtsp://h/a?listen=2"],
  ];
  assertEquals(awaited.map((source) => isAwaited(parseSource(source))), awaited.map(() => true));
  assertEquals(fetched.map((source) => isAwaited(parseSource(source))), fetched.map(() => false));
});
