import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { createAnalyzer } from "../../../src/content/analysis/analyzer.ts";
import type { MetainfoFinder } from "../../../src/content/metainfo.ts";
import { MillraceError } from "../../../src/errors.ts";
import type { FakeClock } from "../../support/fake-clock.ts";
import { type Answer, fakeWeb } from "../../support/fake-web.ts";

const ID = "0123456789abcdef0123456789abcdef01234567";
const context = { callerIsLocal: false, signal: new AbortController().signal };

/** An analyzer on a fake web, whose peers never answer. */
function build(answers: Record<string, Answer>) {
  const web = fakeWeb(answers);
  const searches: AbortSignal[] = [];
  const content: Pick<MetainfoFinder, "find"> = {
    find: (_selector, { signal }) => {
      searches.push(signal);
      return new Promise((_, reject) => {
        if (signal.aborted) reject(signal.reason);
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    },
  };
  const analyzer = createAnalyzer({
    ports: web.ports,
    content: content as MetainfoFinder,
    wrappers: { byInfohash: () => Promise.resolve(null), byContentId: () => Promise.resolve(null) },
    allowPrivateFetch: false,
    isFromPublic: () => Promise.resolve(false),
    readList: async (body) =>
      (await new Response(body).text()).includes("http") ? { entries: [], categories: [] } : null,
    searchTimeoutMs: 5000,
  });
  return { ...web, analyzer, searches };
}

/** Transport stream packets, then nothing. */
const stuck = (head: Uint8Array) =>
  new Response(new ReadableStream({ start: (controller) => controller.enqueue(head) }));

/** The result of `promise` while the clock advances. */
async function inTime<T>(clock: FakeClock, promise: Promise<T>): Promise<T> {
  let over = false;
  promise.then(() => (over = true), () => (over = true));
  while (!over) await clock.advanceAsync(500);
  return await promise;
}

test("Analyzer.analyze() judges a stream that falls silent by the bytes that came", async () => {
  const packets = new Uint8Array(188 * 10);
  for (let at = 0; at < packets.length; at += 188) packets[at] = 0x47;
  const { analyzer, clock } = build({ "http://a.example/tv": () => stuck(packets) });
  const [outcome] = await inTime(clock, analyzer.analyze(["http://a.example/tv"], context));
  assertEquals("analysis" in outcome! && outcome.analysis?.contentType, "direct_stream");
  assertEquals(clock.pendingTimers, 0);
});

test("Analyzer.analyze() gives up on an address that sends nothing", async () => {
  const { analyzer, clock } = build({ "http://a.example/mute": () => new Response(new ReadableStream()) });
  const queries = ["http://a.example/mute", "http://a.example/nobody"];
  const outcomes = await inTime(clock, analyzer.analyze(queries, context));
  const codes = outcomes.map((outcome) => "error" in outcome && (outcome.error as MillraceError).code);
  assertEquals(codes, ["timeout", "timeout"]);
  assertEquals(clock.pendingTimers, 0);
});

test("Analyzer.analyze() follows no master playlist into the private network", async () => {
  const master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nhttp://127.0.0.1/x.m3u8\n";
  const { analyzer, asked } = build({
    "http://a.example/": () => new Response(master),
    "http://127.0.0.1/x.m3u8": () => new Response("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-ENDLIST\n"),
  });
  const [outcome] = await analyzer.analyze(["http://a.example/"], context);
  assertEquals("analysis" in outcome! && outcome.analysis?.isLive, -1);
  assertEquals(asked.length, 1);
});

test("Analyzer.analyze() asks peers about ids within one time limit, then returns what the id itself shows", async () => {
  const { analyzer, clock, searches } = build({});
  const queries = Array.from({ length: 20 }, (_, i) => ID.slice(2) + String(10 + i));
  const outcomes = await inTime(clock, analyzer.analyze(queries, context));
  // One after the other in eights they would take three times as long.
  assert(clock.monotonic() < 10_000);
  assertEquals(outcomes.map((outcome) => "analysis" in outcome && outcome.analysis?.contentId), queries);
  assertEquals(searches.length, 20);
  assertEquals(clock.pendingTimers, 0);
});

test("Analyzer.analyze() rejects when the caller gave up", async () => {
  const { analyzer, clock } = build({});
  const control = new AbortController();
  const pending = analyzer.analyze([ID, "http://a.example/"], { ...context, signal: control.signal });
  pending.catch(() => {});
  control.abort(new MillraceError("aborted", "gone"));
  assertEquals((await assertRejects(() => pending, MillraceError)).code, "aborted");
  await clock.advanceAsync(0);
  assertEquals(clock.pendingTimers, 0);
});
