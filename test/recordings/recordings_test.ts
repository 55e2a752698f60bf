/** Recordings of a channel whose upstream the test sends by hand, on a real disk. */
import { appendFile } from "node:fs/promises";
import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { MillraceError } from "../../src/errors.ts";
import type { AnySession } from "../../src/playback/sessions.ts";
import { Recordings, type RecordingsParts } from "../../src/recordings/recordings.ts";
import { setUpChannels } from "../playback/channel/upstream.ts";
import { temporaryDirectory } from "../support/engine.ts";

const A = "http://a.example/live";
const WANTED = { directUrl: A, mayNamePrivate: false };
const HOUR_MS = 3_600_000;

type Setup = Omit<ReturnType<typeof setUpChannels>, "open"> & {
  readonly directory: string;
  open(more?: Partial<RecordingsParts>): Promise<Recordings>;
  /** Time passes until `isSo`. */
  until(isSo: () => boolean): Promise<void>;
};

async function withRecordings(body: (setup: Setup) => Promise<void>): Promise<void> {
  const directory = await temporaryDirectory();
  const { files } = await loadPorts({ log: { level: "error" } });
  const channels = setUpChannels({ [A]: "sends" });
  const { clock, run, sessions, request } = channels;
  const opened: Recordings[] = [];
  const log = { log() {}, child: () => log };
  try {
    await body({
      ...channels,
      directory: directory.path,
      async open(more = {}) {
        const start = async (_wanted: unknown, id: string, signal: AbortSignal): Promise<AnySession> =>
          await sessions.start(request([A], { output: "hls", pid: id, signal, useApiStop: true }));
        const recordings = await Recordings.load({
          files,
          clock,
          log,
          directory: `${directory.path}/recordings`,
          limitBytes: 0,
          start,
          ...more,
        });
        opened.push(recordings);
        return recordings;
      },
      async until(isSo) {
        for (let left = 600; !isSo(); left--) {
          assert(left > 0, "it comes");
          await run(100);
        }
      },
    });
  } finally {
    for (const recordings of opened) await recordings.close();
    for (const session of sessions.list()) session.stop("done");
    await directory.remove();
  }
}

async function contents(recordings: Recordings, id: string, from = 0, to = Infinity): Promise<Uint8Array> {
  const { file, isGrowing } = recordings.find(id)!;
  const parts: number[] = [];
  for await (const bytes of file.read(from, Math.min(to, file.sizeBytes), isGrowing, new AbortController().signal)) {
    for (const byte of bytes) parts.push(byte);
  }
  return Uint8Array.from(parts);
}

test("Recordings.start() records from now on into a file that can be read while it grows, and ends in time", () =>
  withRecordings(async ({ clock, open, until, sessions }) => {
    const recordings = await open();
    const id = await recordings.start(WANTED, "News", clock.now(), clock.now() + 20_000);
    assertEquals(recordings.list().map(({ title, state }) => [title, state]), [["News", "recording"]]);
    await until(() => recordings.list()[0]!.durationMs > 4000);
    const { file, isGrowing } = recordings.find(id)!;
    const start = await contents(recordings, id);
    assertEquals([start[0], start[188], start.length % 188, isGrowing()], [0x47, 0x47, 0, true]);
    // A reader at the end goes on with what is added, until nothing is.
    let read = 0;
    const reading = (async () => {
      for await (const bytes of file.read(0, Infinity, isGrowing, new AbortController().signal)) read += bytes.length;
    })();
    await until(() => recordings.list()[0]!.state === "done");
    await reading;
    const { sizeBytes, durationMs, error } = recordings.list()[0]!;
    assertEquals([read, error], [sizeBytes, null]);
    assert(durationMs > 12_000 && durationMs < 21_000, `${durationMs} ms`);
    assertEquals(file.segments.map(({ n }) => n), file.segments.map((_, i) => i));
    await until(() => sessions.list().length === 0);
  }));

test("Recordings.load() finds what a run that was killed has recorded, to the last segment, and goes on", () =>
  withRecordings(async ({ clock, open, until, directory }) => {
    const first = await open();
    const id = await first.start(WANTED, "News", clock.now(), clock.now() + HOUR_MS);
    await until(() => first.list()[0]!.durationMs > 4000);
    await first.close();
    const before = first.list()[0]!;
    // The process was killed while it wrote.
    await appendFile(`${directory}/recordings/${id}.ts`, new Uint8Array(1000));
    await appendFile(`${directory}/recordings/${id}.index`, "[5000,20");
    const second = await open();
    const { sizeBytes, durationMs } = second.list()[0]!;
    assertEquals([sizeBytes, durationMs], [before.sizeBytes, before.durationMs]);
    await until(() => second.list()[0]!.durationMs > before.durationMs + 2000);
    await second.stop(id);
    const { segments } = second.find(id)!.file;
    const restarts = segments.filter(({ discontinuity }) => discontinuity);
    assertEquals(restarts.map(({ offset }) => offset), [before.sizeBytes], "players hear of the gap");
    const all = await contents(second, id);
    assertEquals(segments.every(({ offset }) => all[offset] === 0x47), true);
    const third = await open();
    assertEquals(third.list().map(({ state, sizeBytes }) => [state, sizeBytes]), [["done", all.length]]);
  }));

test("Recordings.start() begins later where it is told to, and records no more than there is room for", () =>
  withRecordings(async ({ clock, open, until, asked, run }) => {
    const recordings = await open({ limitBytes: 100_000 });
    await recordings.start(WANTED, "Later", clock.now() + 5000, clock.now() + HOUR_MS);
    await run(4000);
    assertEquals([recordings.list()[0]!.state, asked], ["planned", []]);
    await until(() => recordings.list()[0]!.state === "done");
    const { sizeBytes, error } = recordings.list()[0]!;
    assert(sizeBytes > 0 && sizeBytes <= 100_000, `${sizeBytes} bytes`);
    assertEquals(/space/.test(error ?? ""), true, error ?? "");
  }));

test("Recordings.delete() ends a recording and leaves nothing of it", () =>
  withRecordings(async ({ clock, open, until, sessions }) => {
    const recordings = await open();
    const id = await recordings.start(WANTED, "News", clock.now(), clock.now() + HOUR_MS);
    await until(() => recordings.list()[0]!.sizeBytes > 0);
    await recordings.delete(id);
    assertEquals([recordings.list(), recordings.find(id)], [[], null]);
    await until(() => sessions.list().length === 0);
    assertEquals((await open()).list(), []);
    await assertRejects(() => recordings.delete(id), MillraceError, "no recording");
  }));

test("Recordings.start() says why a recording failed", () =>
  withRecordings(async ({ clock, open, until }) => {
    const start = () => Promise.reject(new MillraceError("not_found", "nobody sends it"));
    const recordings = await open({ start });
    await recordings.start(WANTED, "Gone", clock.now(), clock.now() + HOUR_MS);
    await until(() => recordings.list()[0]!.state === "failed");
    assertEquals(recordings.list()[0]!.error, "nobody sends it");
  }));
