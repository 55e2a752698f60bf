import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { concatBytes } from "../../src/bytes/hex.ts";
import { MillraceError } from "../../src/errors.ts";
import { openSource } from "../../src/inputs/open-source.ts";
import { CLIP, dataOf, hear, losses, OPTIONS, sourcePorts } from "./support.ts";

/** Six pieces of the clip, each a second long or so, cut at packets. */
const SEGMENTS = Array.from({ length: 6 }, (_, i) => {
  const packets = CLIP.length / 188;
  return CLIP.subarray(188 * Math.floor(packets * i / 6), 188 * Math.floor(packets * (i + 1) / 6));
});

type Files = (path: string, n: number) => string | Uint8Array | number;

/** Serves what `files` answers: a text, bytes, or a status. */
async function serving(
  files: Files,
  body: (url: string, ports: Awaited<ReturnType<typeof sourcePorts>>, asked: string[]) => Promise<void>,
  factor = 20,
): Promise<void> {
  const ports = await sourcePorts(factor);
  const asked: string[] = [];
  const server = await ports.http.serve({ host: "127.0.0.1", port: 0 }, (request) => {
    const path = new URL(request.url).pathname;
    const answer = files(path, asked.filter((one) => one === path).length);
    asked.push(path);
    if (typeof answer === "number") return new Response(null, { status: answer });
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get("range") ?? "");
    if (range === null || typeof answer === "string") return new Response(answer as BodyInit);
    return new Response(answer.slice(Number(range[1]), Number(range[2]) + 1), { status: 206 });
  });
  try {
    await body(`http://127.0.0.1:${server.address.port}`, ports, asked);
  } finally {
    await server.close(0);
  }
}

const HEAD = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n";

function playlist(first: number, end: number, tail = ""): string {
  const lines = Array.from({ length: end - first }, (_, i) => `#EXTINF:1.0,\n${first + i}.ts\n`);
  return `${HEAD}#EXT-X-MEDIA-SEQUENCE:${first}\n${lines.join("")}${tail}`;
}

const segment = (path: string) => SEGMENTS[Number(/(\d+)\.ts$/.exec(path)![1]) % 6]!;

test("an HLS source plays a recording from its best variant once through, paced by its clock, and ends", () =>
  serving((path) => {
    if (path === "/master.m3u8") {
      return "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow/list.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=2\nhigh/list.m3u8\n";
    }
    return path === "/high/list.m3u8"
      ? playlist(0, 6, "#EXT-X-ENDLIST\n")
      : path.startsWith("/high/")
      ? segment(path)
      : 404;
  }, async (url, ports, asked) => {
    const startMs = ports.clock.monotonic();
    const heard = await hear((await openSource(ports, `${url}/master.m3u8`, OPTIONS)).input);
    assertEquals(losses(heard), []);
    assertEquals(dataOf(heard), CLIP);
    const tookMs = ports.clock.monotonic() - startMs;
    assert(tookMs > 5000 && tookMs < 12_000, `${tookMs} ms`);
    assertEquals(asked.filter((path) => path.endsWith(".ts")), [0, 1, 2, 3, 4, 5].map((i) => `/high/${i}.ts`));
  }, 10));

test("an HLS source follows a live playlist, even if its address does not look like one", () =>
  serving((path, n) => {
    if (path !== "/live") return segment(path);
    // One segment more with each reload, then the end.
    return playlist(n, 6 + n, n === 4 ? "#EXT-X-ENDLIST\n" : "");
  }, async (url, ports) => {
    const heard = await hear((await openSource(ports, `${url}/live`, OPTIONS)).input);
    // The first request only recognised the playlist; the second returns [1, 7), joined three segments before its end.
    // Where the clip begins again its clock does, too.
    assertEquals(losses(heard), ["the clock of the stream jumped by -5.9 s"]);
    assertEquals(dataOf(heard).length, [4, 5, 6, 7, 8, 9].reduce((sum, i) => sum + SEGMENTS[i % 6]!.length, 0));
  }));

test("an HLS source marks discontinuities and segments that cannot be fetched, and continues", () =>
  serving((path) => {
    if (path === "/list.m3u8") {
      return `${HEAD}#EXTINF:1,\n0.ts\n#EXT-X-DISCONTINUITY\n#EXTINF:1,\n1.ts\n#EXTINF:1,\ngone.ts\n#EXTINF:1,\n3.ts\n#EXT-X-ENDLIST\n`;
    }
    return path === "/gone.ts" ? 404 : segment(path);
  }, async (url, ports, asked) => {
    const heard = await hear((await openSource(ports, `${url}/list.m3u8`, OPTIONS)).input);
    assertEquals(heard.map((one) => "lost" in one ? one.lost : one.data.length), [
      SEGMENTS[0]!.length,
      "the playlist has a discontinuity",
      SEGMENTS[1]!.length,
      "segment 2 could not be fetched",
      SEGMENTS[3]!.length,
    ]);
    assertEquals(asked.filter((path) => path === "/gone.ts").length, 3);
  }));

test("an HLS source waits for a segment that its server names before it has it", () =>
  serving((path, n) => {
    if (path === "/list.m3u8") {
      return playlist(0, 6, n > 3 ? "#EXT-X-ENDLIST\n" : "").replaceAll("EXTINF:1.0", "EXTINF:4.0").replace(
        "ON:1",
        "ON:4",
      );
    }
    return path === "/4.ts" && n < 4 ? 404 : segment(path);
  }, async (url, ports, asked) => {
    const heard = await hear((await openSource(ports, `${url}/list.m3u8`, OPTIONS)).input);
    assertEquals(losses(heard), []);
    assertEquals(dataOf(heard).length, SEGMENTS.slice(3).reduce((sum, { length }) => sum + length, 0));
    assertEquals(asked.filter((path) => path === "/4.ts").length, 5);
  }, 2));

test("an HLS source does not ask for a segment that is marked as a gap", () =>
  serving(
    (path) =>
      path === "/list.m3u8"
        ? `${HEAD}#EXTINF:1,\n0.ts\n#EXT-X-GAP\n#EXTINF:1,\n1.ts\n#EXTINF:1,\n2.ts\n#EXT-X-ENDLIST\n`
        : segment(path),
    async (url, ports, asked) => {
      const heard = await hear((await openSource(ports, `${url}/list.m3u8`, OPTIONS)).input);
      assertEquals(heard.map((one) => "lost" in one ? one.lost : one.data.length), [
        SEGMENTS[0]!.length,
        "segment 1 is missing at the source, which says so",
        SEGMENTS[2]!.length,
      ]);
      assertEquals(asked.includes("/1.ts"), false);
    },
  ));

test("an HLS source reads byte ranges, also from a server that has none", () =>
  serving((path) => {
    const cut = SEGMENTS[0]!.length;
    if (path === "/list.m3u8") {
      return `${HEAD}#EXTINF:1,\n#EXT-X-BYTERANGE:${cut}@0\nall.ts\n#EXTINF:1,\n#EXT-X-BYTERANGE:${
        SEGMENTS[1]!.length
      }\nall.ts\n#EXT-X-ENDLIST\n`;
    }
    return CLIP;
  }, async (url, ports) => {
    const heard = await hear((await openSource(ports, `${url}/list.m3u8`, OPTIONS)).input);
    assertEquals(dataOf(heard), CLIP.subarray(0, SEGMENTS[0]!.length + SEGMENTS[1]!.length));
  }));

test("an HLS source that is lost for a while continues with a discontinuity", () =>
  serving((path, n) => {
    if (path !== "/list.m3u8") return segment(path);
    if (n === 0) return playlist(0, 3);
    // Away for a while, then back with a new count.
    return n < 8 ? 502 : playlist(102, 105, "#EXT-X-ENDLIST\n");
  }, async (url, ports) => {
    const heard = await hear((await openSource(ports, `${url}/list.m3u8`, OPTIONS)).input);
    assertEquals(heard.map((one) => "lost" in one ? "lost" : "data"), ["data", "lost", "data"]);
  }));

test("an HLS source decrypts segments whose key its playlist names, each key fetched once", async () => {
  const secret = crypto.getRandomValues(new Uint8Array(16));
  const key = await crypto.subtle.importKey("raw", secret, "AES-CBC", false, ["encrypt"]);
  const sealed = await Promise.all(SEGMENTS.map(async (bytes, i) => {
    const iv = new Uint8Array(16);
    iv[15] = i === 5 ? 0xab : i;
    return new Uint8Array(await crypto.subtle.encrypt({ name: "AES-CBC", iv }, key, bytes.slice()));
  }));
  const line = (more = "") => `#EXT-X-KEY:METHOD=AES-128,URI="key.bin"${more}\n`;
  const last = `${line(`,IV=0x${"0".repeat(30)}ab`)}#EXTINF:1.0,\n5.ts\n#EXT-X-ENDLIST\n`;
  await serving((path) => {
    if (path === "/list.m3u8") return playlist(0, 5, last).replace("#EXTINF", `${line()}#EXTINF`);
    return path === "/key.bin" ? secret : sealed[Number(/(\d+)\.ts$/.exec(path)![1])]!;
  }, async (url, ports, asked) => {
    const heard = await hear((await openSource(ports, `${url}/list.m3u8`, OPTIONS)).input);
    assertEquals(losses(heard), []);
    assertEquals(dataOf(heard), CLIP);
    assertEquals(asked.filter((path) => path === "/key.bin").length, 1);
  });
});

test("an HLS source leaves out segments that their key does not open", () =>
  serving((path) => {
    if (
      path === "/list.m3u8"
    ) return `${HEAD}#EXTINF:1,\n0.ts\n#EXT-X-KEY:METHOD=AES-128,URI="k"\n#EXTINF:1,\n1.ts\n#EXT-X-ENDLIST\n`;
    return path === "/k" ? new Uint8Array(16) : segment(path);
  }, async (url, ports) => {
    const heard = await hear((await openSource(ports, `${url}/list.m3u8`, OPTIONS)).input);
    assertEquals(heard.map((one) => "lost" in one ? one.lost : one.data.length), [
      SEGMENTS[0]!.length,
      "segment 1 could not be fetched",
    ]);
  }));

test("an HLS source refuses what it cannot send, in one line that says what to do", () =>
  serving((path) => {
    switch (path) {
      case "/fmp4.m3u8":
        return `${HEAD}#EXT-X-MAP:URI="i.mp4"\n#EXTINF:1,\n0.m4s\n`;
      case "/aes.m3u8":
        return `${HEAD}#EXT-X-KEY:METHOD=SAMPLE-AES,URI="k"\n#EXTINF:1,\n0.ts\n`;
      case "/bare.m3u8":
        return `${HEAD}#EXTINF:1,\nstyp.mp4\n`;
      case "/empty.m3u8":
        return "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nfile:///etc/passwd\n";
      case "/loop.m3u8":
        return "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nloop.m3u8\n";
      default:
        return new TextEncoder().encode("\0\0\0\x18stypmsdh").slice();
    }
  }, async (url, ports) => {
    const table: [string, RegExp][] = [
      ["fmp4", /cannot be broadcast as it is: it is fragmented MP4, not MPEG TS; .*ffmpeg:/],
      ["aes", /it is encrypted \(SAMPLE-AES\)/],
      ["bare", /its segments are no MPEG TS/],
      ["empty", /names no stream to play/],
      ["loop", /from playlist to playlist/],
    ];
    for (const [name, says] of table) {
      const { input } = await openSource(ports, `${url}/${name}.m3u8?key=secret`, OPTIONS);
      const error = await assertRejects(() => hear(input), MillraceError);
      assertMatch(error.message, says);
      assert(!error.message.includes("secret"));
    }
  }));

test("an HLS source continues a segment that broke off where it broke off", async () => {
  const ports = await sourcePorts(20);
  let asked = 0;
  const server = await ports.http.serve({ host: "127.0.0.1", port: 0 }, (request) => {
    if (request.url.endsWith(".m3u8")) return new Response(playlist(0, 2, "#EXT-X-ENDLIST\n"));
    const bytes = segment(new URL(request.url).pathname);
    const isBroken = request.url.endsWith("/0.ts") && asked++ === 0;
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(bytes.slice(0, isBroken ? 10_000 : bytes.length));
        if (isBroken) controller.error(new Error("the server went away"));
        else controller.close();
      },
    });
    return new Response(body);
  });
  try {
    const { input } = await openSource(ports, `http://127.0.0.1:${server.address.port}/list.m3u8`, OPTIONS);
    const heard = await hear(input);
    assertEquals(losses(heard), []);
    assertEquals(dataOf(heard), concatBytes(SEGMENTS.slice(0, 2)));
    assertEquals(asked, 2);
  } finally {
    await server.close(0);
  }
});
