import { test } from "node:test";
import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { queryFields } from "../../src/http/api/input.ts";
import { readOwnInput } from "./read-input.ts";
import { readUpload } from "../../src/http/api/upload.ts";
import { BODY_IDLE_MS, BODY_WHOLE_MS, bodyChunks } from "../../src/http/request-body.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { until } from "../support/until.ts";
import { playbackApp } from "./playback-app.ts";

/** A body that says `parts` and then nothing more. */
function stuck(...parts: string[]): { body: ReadableStream<Uint8Array>; cancelled: () => boolean } {
  let cancelled = false;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const part of parts) controller.enqueue(new TextEncoder().encode(part));
    },
    cancel: () => void (cancelled = true),
  });
  return { body, cancelled: () => cancelled };
}

const post = (body: ReadableStream<Uint8Array>, type = "audio/x-mpegurl") =>
  new Request("http://127.0.0.1/x", {
    method: "POST",
    body,
    headers: { "content-type": type },
    duplex: "half",
  } as RequestInit);

/** `waiting`, while time passes. */
async function inTime<T>(clock: FakeClock, waiting: Promise<T>): Promise<T> {
  let over = false;
  waiting.finally(() => over = true).catch(() => {});
  await until("the end", async () => {
    await clock.advanceAsync(BODY_IDLE_MS);
    return over;
  });
  return await waiting;
}

async function givenUp(clock: FakeClock, reading: Promise<unknown>): Promise<void> {
  const error = await inTime(clock, assertRejects(() => reading, MillraceError)) as MillraceError;
  assertEquals(error.code, "timeout");
  assertMatch(error.message, /stopped coming/);
  assertEquals(clock.pendingTimers, 0);
}

test("bodyChunks() gives up on a body that stops coming, however it is read", async () => {
  const readers: ((request: Request, clock: FakeClock) => Promise<unknown>)[] = [
    async (request, clock) => {
      for await (const chunk of bodyChunks(request, clock)) assertEquals(chunk.length, 3);
    },
    (request, clock) => readOwnInput(request, clock),
    (request, clock) =>
      readUpload(request, queryFields(request), "file", async (chunks) => {
        for await (const chunk of chunks) assertEquals(chunk.length, 3);
        throw new Error("it has no end");
      }, clock),
  ];
  for (const read of readers) {
    const clock = new FakeClock();
    const { body, cancelled } = stuck("abc");
    await givenUp(clock, read(post(body), clock));
    await until("the end of the body", cancelled);
  }
});

test("bodyChunks() accepts a body that pauses and continues", async () => {
  const clock = new FakeClock();
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const input = readOwnInput(post(readable, "application/x-www-form-urlencoded"), clock);
  for (const part of ["a=", "1", "&b=2"]) {
    await until("the wait", () => clock.pendingTimers === 2);
    await clock.advanceAsync(BODY_IDLE_MS - 1);
    await writer.write(new TextEncoder().encode(part));
  }
  await writer.close();
  assertEquals([(await input).texts("a"), (await input).texts("b")], [["1"], ["2"]]);
  assertEquals(clock.pendingTimers, 0);
});

test("readBody() gives up on a body that never pauses for long but has no end", async () => {
  const clock = new FakeClock();
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const failed = assertRejects(() => readOwnInput(post(readable), clock), MillraceError);
  for (let ms = 0; ms < BODY_WHOLE_MS; ms += BODY_IDLE_MS / 2) {
    await until("the wait", () => clock.pendingTimers === 2);
    await writer.write(new Uint8Array(1));
    await clock.advanceAsync(BODY_IDLE_MS / 2);
  }
  assertMatch(((await failed) as MillraceError).message, /took longer than 60 s/);
  assertEquals(clock.pendingTimers, 0);
});

test("a stream whose transport file stops coming does not start", async () => {
  const { clock, get } = playbackApp([]);
  const answer = get("/engine/getstream", {
    method: "POST",
    body: stuck("d4:info").body,
    duplex: "half",
  } as RequestInit);
  assertEquals((await inTime(clock, answer)).status, 504);
});
