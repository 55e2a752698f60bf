import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import os from "node:os";
import { MillraceError } from "../../src/errors.ts";
import type { FilePort } from "../../src/ports.ts";
import { openSource } from "../../src/inputs/open-source.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { clip, clipPath } from "../support/fixtures.ts";
import { checkTs, ticksBetween } from "../support/ts-check.ts";
import { until } from "../support/until.ts";
import { dataOf, hear, losses, OPTIONS, sourcePorts } from "./support.ts";

const checked = (bytes: Uint8Array) => {
  const report = checkTs(bytes, { isRange: true, isSegment: false });
  return { ...report, problems: report.problems.filter((text) => !text.includes("PCR gap")) };
};

test("a file source with --once sends the file once, in the time that it takes", async () => {
  const ports = await sourcePorts(10);
  const { input, bytesPerS } = await openSource(ports, clipPath("ts-188.ts"), { ...OPTIONS, once: true });
  const startMs = ports.clock.monotonic();
  const heard = await hear(input);
  const tookMs = ports.clock.monotonic() - startMs;
  assertEquals(losses(heard), []);
  assertEquals(dataOf(heard), clip("ts-188.ts"));
  assert(tookMs > 5000 && tookMs < 8000, `${tookMs} ms for six seconds`);
  assert(Math.abs(bytesPerS! / (clip("ts-188.ts").length / 6.02) - 1) < 0.1, `${bytesPerS} B/s`);
});

for (const name of ["ts-204.ts", "mp4-front.mp4", "mkv-cues.mkv"]) {
  test(`a file source plays ${name} over and over with times that go on`, async () => {
    const ports = await sourcePorts(50);
    const { input, bytesPerS } = await openSource(ports, `file://${clipPath(name)}`, OPTIONS);
    assert(bytesPerS !== null && bytesPerS > 0);
    // Three passes and a bit.
    const once = dataOf(await hear((await openSource(ports, clipPath(name), { ...OPTIONS, once: true })).input));
    const heard = await hear(input, (_, bytes) => bytes > 3 * once.length);
    assertEquals(losses(heard), []);
    const { problems, streams } = checked(dataOf(heard));
    assertEquals(problems, []);
    for (const { units } of streams) {
      const steps = units.slice(1).map((unit, i) => ticksBetween(unit.dts, units[i]!.dts));
      assert(Math.min(...steps) > 0 && Math.max(...steps) < 90_000, `${Math.min(...steps)} to ${Math.max(...steps)}`);
    }
  });
}

test("a file source refuses a codec that cannot be carried, a directory and a missing file", async () => {
  const ports = await sourcePorts();
  const table: [string, string, RegExp][] = [
    [clipPath("webm-vp9-opus.webm"), "unsupported_media", /vp9/i],
    [os.tmpdir(), "config", /is a directory/],
    ["/no/such/clip.ts", "not_found", /clip\.ts/],
  ];
  for (const [path, code, says] of table) {
    const error = await assertRejects(() => openSource(ports, path, OPTIONS), MillraceError);
    assertEquals(error.code, code);
    assertMatch(error.message, says);
  }
});

test("a file source waits for a drive that went away, and continues with times that do not step back", async () => {
  const ports = await sourcePorts(20);
  let reads = 0;
  let opens = 0;
  const files: FilePort = {
    ...ports.files,
    async open(path, mode) {
      if (++opens === 3) throw new MillraceError("not_found", `cannot open ${path} (ENOENT)`);
      const handle = await ports.files.open(path, mode);
      const read = (into: Uint8Array, position: number) =>
        opens === 2 && ++reads === 2
          ? Promise.reject(new MillraceError("io", "cannot read (EIO)"))
          : handle.read(into, position);
      return {
        read,
        write: (data, position) => handle.write(data, position),
        truncate: (size) => handle.truncate(size),
        info: () => handle.info(),
        sync: () => handle.sync(),
        close: () => handle.close(),
      };
    },
  };
  const { input } = await openSource({ ...ports, files }, clipPath("ts-188.ts"), OPTIONS);
  const heard = await hear(input, (_, bytes) => bytes > 1.5 * clip("ts-188.ts").length);
  assertEquals(losses(heard), ["cannot read (EIO)"]);
  assertEquals(opens, 4);
  assertEquals(checked(dataOf(heard)).problems.filter((text) => !text.includes("counter")), []);
});

test("a file source reads formats other than MPEG TS, MP4 and Matroska through ffmpeg, in real time and looped", async () => {
  const ports = await sourcePorts(20);
  const path = `${os.tmpdir()}/millrace-source-${crypto.randomUUID()}.avi`;
  await ports.files.writeFile(path, new TextEncoder().encode("RIFF....AVI LIST"));
  const calls: (readonly string[])[] = [];
  const processes = {
    spawn(command: string, args: readonly string[]) {
      calls.push([command, ...args]);
      return ports.processes.spawn("cat", [clipPath("ts-188.ts")]);
    },
  };
  try {
    const { input } = await openSource({ ...ports, processes }, path, OPTIONS);
    assertEquals(dataOf(await hear(input)), clip("ts-188.ts"));
    assertEquals(calls.length, 1);
    assertMatch(
      calls[0]!.join(" "),
      /^ffmpeg .*-nostdin -re -stream_loop -1 -protocol_whitelist file,crypto,data -format_whitelist \S+ -i file:.*\.avi .*-c copy -f mpegts/,
    );
  } finally {
    await ports.files.remove(path);
  }
});

test("openSource() gives up on a file that does not open, at its deadline and when aborted", async () => {
  const ports = await sourcePorts();
  const clock = new FakeClock();
  // As a named pipe without a writer, or a drive that hangs.
  const open = () => new Promise<never>(() => {});
  const hanging = { ...ports, clock, files: { ...ports.files, open } };
  const path = clipPath("ts-188.ts");
  const late = assertRejects(() => openSource(hanging, path, OPTIONS), MillraceError, "in time");
  await until("the deadline", () => clock.pendingTimers === 1);
  await clock.advanceAsync(30_000);
  await late;
  const control = new AbortController();
  const stopped = assertRejects(() => openSource(hanging, path, { ...OPTIONS, signal: control.signal }), MillraceError);
  await until("the deadline", () => clock.pendingTimers === 1);
  control.abort();
  assertEquals((await stopped as MillraceError).code, "aborted");
  assertEquals(clock.pendingTimers, 0);
});
