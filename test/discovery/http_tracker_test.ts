import { test } from "node:test";
import type { ServerResponse } from "node:http";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { encodeBencode } from "../../src/bytes/bencode.ts";
import type { Announce } from "../../src/discovery/announce.ts";
import { announceHttp, announceUrl, escapeBytes, parseHttpAnswer } from "../../src/discovery/http-tracker.ts";
import { refuseAll } from "../../src/discovery/redirects.ts";
import { MillraceError } from "../../src/errors.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { compact, startHttpTracker } from "./support/http-tracker.ts";
import { testPorts, until } from "./support/ports.ts";
import { seededBelow } from "../support/random.ts";

const announce: Announce = {
  infohash: new Uint8Array(Array.from({ length: 20 }, (_, i) => i * 13)),
  peerId: new TextEncoder().encode("-MI0100-~._-abcdefgh"),
  port: 8621,
  uploadedBytes: 1,
  downloadedBytes: 2,
  leftBytes: 5_000_000_000,
  event: "started",
  numWant: 80,
  key: 255,
  trackerId: null,
};

const context = { ...testPorts(), publicFetch: refuseAll, userAgent: "millrace/test" };
const never = new AbortController().signal;

/** Announces to a tracker that replies with `reply`. */
async function ask(reply: (response: ServerResponse) => void, path = "/announce") {
  const tracker = await startHttpTracker((_announce, response) => reply(response));
  try {
    return await announceHttp(context, `${tracker.origin}${path}`, announce, never);
  } finally {
    await tracker.close();
  }
}

test("announceHttp() sends escaped bytes and all fields, and keeps the tracker's own query", async () => {
  const tracker = await startHttpTracker((_announce, response) => {
    response.end(encodeBencode({ interval: 1800, peers: compact("10.0.0.1:6881") }));
  });
  const answer = await announceHttp(context, `${tracker.origin}/announce?passkey=a%2Bb`, announce, never);
  await tracker.close();
  assertEquals(answer.peers, [{ host: "10.0.0.1", port: 6881 }]);
  const { query, userAgent } = tracker.seen[0]!;
  assertEquals(userAgent, "millrace/test");
  assertEquals(query.get("passkey"), "a%2Bb");
  assertEquals(query.get("info_hash"), "%00%0D%1A%274AN%5Bhu%82%8F%9C%A9%B6%C3%D0%DD%EA%F7");
  assertEquals(query.get("peer_id"), "-MI0100-~._-abcdefgh");
  const rest = ["port", "uploaded", "downloaded", "left", "compact", "numwant", "event", "key"];
  assertEquals(rest.map((name) => query.get(name)), ["8621", "1", "2", "5000000000", "1", "80", "started", "000000ff"]);
});

test("announceUrl() omits the event from regular announces and echoes the tracker id", () => {
  const trackerId = new Uint8Array([0, 0x41]);
  const url = announceUrl("http://t/announce#x", { ...announce, event: "", trackerId });
  assert(!url.includes("event=") && !url.includes("#"));
  assert(url.endsWith("&trackerid=%00A"));
});

test("escapeBytes() returns text that decodes to the same bytes", () => {
  const all = new Uint8Array(256).map((_, i) => i);
  const back = escapeBytes(all).replace(/%([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
  assertEquals([...back].map((char) => char.charCodeAt(0)), [...all]);
});

test("parseHttpAnswer() reads compact, dictionary and IPv6 peers, intervals, counts, warning and tracker id", () => {
  const peers6 = new Uint8Array([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x1a, 0xe1]);
  const answer = parseHttpAnswer(encodeBencode({
    interval: 900,
    "min interval": 60,
    complete: 3,
    incomplete: 4,
    "warning message": "slow\ndown",
    "tracker id": "abc",
    peers: [
      { ip: "10.0.0.1", port: 1 },
      { ip: "2001:DB8::2", port: 2, "peer id": "x" },
      { ip: "::ffff:10.0.0.9", port: 9 },
      { ip: "example.org", port: 3 },
      { ip: "a b", port: 3 },
      { ip: "example.org", port: 0 },
      { ip: "10.0.0.2", port: 0 },
      { ip: "0.0.0.0", port: 5 },
      { ip: "224.0.0.1", port: 5 },
      { port: 4 },
      7,
    ],
    peers6,
  }));
  assertEquals(answer, {
    peers: [
      { host: "10.0.0.1", port: 1 },
      { host: "2001:db8::2", port: 2 },
      { host: "10.0.0.9", port: 9 },
      { host: "2001:db8::1", port: 6881 },
    ],
    named: [{ host: "example.org", port: 3 }],
    intervalMs: 900_000,
    minIntervalMs: 60_000,
    seeders: 3,
    leechers: 4,
    warning: "slow down",
    trackerId: new Uint8Array([0x61, 0x62, 0x63]),
  });
});

test("parseHttpAnswer() takes at most 500 peers per form and ignores incomplete entries and absurd numbers", () => {
  const answer = parseHttpAnswer(
    encodeBencode({ interval: -5, complete: -1, peers: new Uint8Array(6 * 2000 + 5).fill(9) }),
  );
  assertEquals([answer.peers.length, answer.intervalMs, answer.seeders], [500, null, null]);
});

const ok = encodeBencode({ interval: 1800, peers: compact("10.0.0.1:6881") });
const failures: readonly [name: string, code: string, text: string, reply: (response: ServerResponse) => void][] = [
  ["a failure reason", "tracker", "unregistered torrent", (response) => {
    response.end(encodeBencode({ "failure reason": "unregistered torrent" }));
  }],
  ["a failure reason under status 403", "tracker", "banned", (response) => {
    response.writeHead(403).end(encodeBencode({ "failure reason": "banned" }));
  }],
  ["status 500", "tracker", "HTTP status 500", (response) => void response.writeHead(500).end("oops")],
  ["status 404 with a valid body", "tracker", "HTTP status 404", (response) => void response.writeHead(404).end(ok)],
  ["garbage", "protocol_violation", "bencod", (response) => void response.end("<html>hello</html>")],
  ["nothing", "protocol_violation", "bencod", (response) => void response.end()],
  ["a list", "protocol_violation", "dictionary", (response) => void response.end("le")],
  ["a nesting bomb", "protocol_violation", "nested", (response) => void response.end("d1:a" + "l".repeat(100_000))],
  ["more than 1 MiB", "too_large", "1 MiB", (response) => void response.end(new Uint8Array(2 << 20))],
  ["an endless redirect", "tracker", "redirects", (response) => {
    response.writeHead(302, { location: "/announce" }).end();
  }],
  ["a redirect to another scheme", "tracker", "not an HTTP address", (response) => {
    response.writeHead(302, { location: "file:///etc/passwd" }).end();
  }],
  ["a script's warning before the bencoding", "protocol_violation", 'begins with "Notice : x d8:', (response) => {
    response.end(`<br />\n<b>Notice</b>: x\n${String.fromCharCode(...ok)}`);
  }],
  ["an empty failure reason beside peers", "tracker", "refused without a reason", (response) => {
    response.end(encodeBencode({ "failure reason": "", peers: compact("10.0.0.1:6881") }));
  }],
  ["a redirect to an address without the announce's fields", "tracker", "redirected the announce", (response) => {
    const isMoved = response.req.url!.startsWith("/moved");
    if (!isMoved) response.writeHead(302, { location: "/moved/announce?passkey=a" });
    response.end(isMoved ? encodeBencode({ "failure reason": "no info_hash" }) : "");
  }],
  ["a dropped connection", "connection_failed", "", (response) => void response.destroy()],
];
for (const [name, code, text, reply] of failures) {
  test(`announceHttp() rejects with ${code} when the tracker replies with ${name}`, async () => {
    const error = await assertRejects(() => ask(reply), MillraceError, text);
    assertEquals(error.code, code);
  });
}

test("announceHttp() reads answers that break HTTP's grammar", async () => {
  const heads = [
    "HTTP/1.0 200 OK\n\n",
    "HTTP/1.1 200 OK\r\nX Bad: y\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n",
  ];
  for (const head of heads) {
    const answer = await ask(({ socket }) =>
      void socket!.end(new Uint8Array([...new TextEncoder().encode(head), ...ok]))
    );
    assertEquals(answer.peers, [{ host: "10.0.0.1", port: 6881 }], head);
  }
});

test("parseHttpAnswer() skips a byte order mark and blank lines before the answer, and all that follows it", () => {
  for (const [before, after] of [["\r\n", ""], ["\ufeff\n ", "\n"], ["", "<!-- end -->"]] as const) {
    const body = new Uint8Array([...new TextEncoder().encode(before), ...ok, ...new TextEncoder().encode(after)]);
    assertEquals(parseHttpAnswer(body).peers.length, 1);
  }
});

test("announceHttp() takes an answer that is whole when the connection breaks, and no other", async () => {
  for (const [bytes, peers] of [[ok, 1], [ok.subarray(0, -1), null]] as const) {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(bytes),
      pull: (controller) => controller.error(new Error("broken")),
    }, { highWaterMark: 0 });
    const fetch = () => Promise.resolve(new Response(body as BodyInit));
    const answer = announceHttp({ ...context, fetch: fetch as typeof globalThis.fetch }, "http://t/a", announce, never);
    if (peers !== null) assertEquals((await answer).peers.length, peers);
    else assertEquals((await assertRejects(() => answer, MillraceError)).code, "connection_failed");
  }
});

test("announceHttp() follows a redirect and keeps nothing from the failed try", async () => {
  const tracker = await startHttpTracker(({ path, query }, response) => {
    if (path === "/new") return void response.end(ok);
    const fields = [...query].map(([name, value]) => `${name}=${value}`).join("&");
    response.writeHead(301, { location: `/new?${fields}` }).end();
  });
  const answer = await announceHttp(context, `${tracker.origin}/announce`, announce, never);
  await tracker.close();
  assertEquals(answer.peers.length, 1);
  assertEquals(tracker.seen[1]!.query.get("info_hash"), tracker.seen[0]!.query.get("info_hash"));
});

test("announceHttp() does not follow a redirect from the public network to a local address", async () => {
  const locations = ["http://127.0.0.1:1/", "http://[::1]/", "http://localhost/", "http://10.0.0.1/", "http://0x7f.1/"];
  for (const location of locations) {
    const asked: string[] = [];
    const fetch = (url: string | URL | Request) => {
      asked.push(String(url));
      return Promise.resolve(new Response(null, { status: 302, headers: { location } }));
    };
    const hostile = { ...context, fetch: fetch as typeof globalThis.fetch };
    const error = await assertRejects(
      () => announceHttp(hostile, "http://t.example/a", announce, never),
      MillraceError,
    );
    assertEquals([error.code, asked.length], ["denied", 1]);
  }
});

test("announceHttp() reads `retry in` of a refusal", async () => {
  for (const [value, expected] of [["never", Infinity], ["5", 300_000], [5, 300_000], ["x", null]] as const) {
    const body = encodeBencode({ "failure reason": "full", "retry in": value });
    const error = await assertRejects(() => ask((response) => void response.end(body)), MillraceError);
    assertEquals(error.detail, { retryInMs: expected });
  }
});

for (const stage of ["before the head", "within the body"] as const) {
  test(`announceHttp() gives up after 15 s when the tracker stalls ${stage}`, async () => {
    const clock = new FakeClock();
    let stalled = false;
    const tracker = await startHttpTracker((_announce, response) => {
      if (stage === "within the body") response.write("d8:");
      stalled = true;
    });
    let heads = 0;
    const fetch: typeof globalThis.fetch = async (...args) => {
      const response = await globalThis.fetch(...args);
      heads++;
      return response;
    };
    const answer = announceHttp({ ...context, clock, fetch }, `${tracker.origin}/announce`, announce, never);
    const rejected = assertRejects(() => answer, MillraceError, "15 s");
    await until(() => stalled && (stage === "before the head" || heads > 0), "the tracker stalls");
    clock.advance(15_000);
    assertEquals((await rejected).code, "timeout");
    assertEquals(clock.pendingTimers, 0);
    await tracker.close();
  });
}

test("parseHttpAnswer() throws only MillraceError on 3,000 mutations", () => {
  const random = seededBelow(1);
  const base = encodeBencode({
    interval: 1800,
    "min interval": 60,
    peers: [{ ip: "10.0.0.1", port: 1 }, { ip: "::1", port: 2 }],
    peers6: new Uint8Array(36).fill(3),
    "tracker id": "id",
    "failure reasom": "x",
  });
  for (let i = 0; i < 3_000; i++) {
    const bytes = base.slice(0, 1 + random(base.length));
    for (let n = random(4); n >= 0; n--) bytes[random(bytes.length)] = random(256);
    try {
      parseHttpAnswer(bytes);
    } catch (error) {
      assert(error instanceof MillraceError, String(error));
    }
  }
});
