import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import type { ChildProcess } from "../../src/ports.ts";
import { openSource } from "../../src/inputs/open-source.ts";
import { clipPath } from "../support/fixtures.ts";
import { until } from "../support/until.ts";
import { CLIP, dataOf, hear, losses, OPTIONS, sourcePorts } from "./support.ts";

const PATH = clipPath("ts-188.ts");

/** Ports whose `ffmpeg` is a shell script; `$1` is the clip. */
async function withScripts(factor: number, scripts: readonly string[]) {
  const ports = await sourcePorts(factor);
  const children: ChildProcess[] = [];
  let calls = 0;
  const processes = {
    async spawn() {
      const script = scripts[Math.min(calls++, scripts.length - 1)]!;
      const child = await ports.processes.spawn("/bin/sh", ["-c", script, "sh", PATH]);
      children.push(child);
      return child;
    },
  };
  return { ports: { ...ports, processes }, children };
}

test("an SRT source is read through ffmpeg, started again when it fails, without its secrets in the reason", async () => {
  const failing =
    'head -c 50196 "$1"; echo "[srt] noise" >&2; echo "srt://h:9?passphrase=secret: Input/output error" >&2; exit 1';
  const { ports, children } = await withScripts(20, [failing, 'cat "$1"']);
  const { input } = await openSource(ports, "srt://h:9?passphrase=secret", OPTIONS);
  const heard = await hear(input, (_, bytes) => bytes === 50196 + CLIP.length);
  assertEquals(heard.map((one) => "lost" in one ? one.lost : one.data.length), [
    50196,
    "ffmpeg: srt://h:9: Input/output error (nobody answers there, or the passphrase or streamid is wrong)",
    CLIP.length,
  ]);
  for (const child of children) await child.exited;
});

test("an RTMP source that falls silent has its ffmpeg ended and started again", async () => {
  const { ports, children } = await withScripts(20, ['cat "$1"; exec sleep 600', 'cat "$1"']);
  const { input } = await openSource(ports, "rtmp://h/app/key", OPTIONS);
  const heard = await hear(input, (_, bytes) => bytes === 2 * CLIP.length);
  assertMatch(losses(heard)[0]!, /nothing came for 5 s/);
  assertEquals(children.length, 2);
  assert(await children[0]!.exited > 128);
});

test("an SRT source has 30 s to begin, because ffmpeg analyses the stream before it outputs any", async () => {
  const { ports, children } = await withScripts(20, ['sleep 0.5; cat "$1"; exec sleep 600']);
  const { input } = await openSource(ports, "srt://h:9", OPTIONS);
  assertEquals(losses(await hear(input, (_, bytes) => bytes === CLIP.length)), []);
  assertEquals(children.length, 1);
});

test("an ffmpeg source that is no longer read leaves no process behind", async () => {
  const { ports, children } = await withScripts(20, ['cat "$1"; exec sleep 600']);
  const { input } = await openSource(ports, "rtsp://h/1", OPTIONS);
  await hear(input, (_, bytes) => bytes === CLIP.length);
  assert(await children[0]!.exited > 128);
});

test("a source that takes ffmpeg says so where there is none", async () => {
  const ports = await sourcePorts();
  const processes = { spawn: (_: string, args: readonly string[]) => ports.processes.spawn("no-such-ffmpeg", args) };
  const { input } = await openSource({ ...ports, processes }, "rtmp://h/app/key", OPTIONS);
  const error = await assertRejects(() => hear(input), MillraceError);
  assertEquals(error.code, "unavailable");
  assertMatch(
    error.message,
    /rtmp:\/\/h\/app\/key takes ffmpeg, which is not on the PATH: install it, or pipe .* --source -$/,
  );
});

/** Standard input as another program writes it. */
async function piped(factor: number, script: string) {
  const ports = await sourcePorts(factor);
  const child = await ports.processes.spawn("/bin/sh", ["-c", script, "sh", PATH]);
  return { ports, child, source: await openSource(ports, "-", { ...OPTIONS, stdin: () => child.stdout }) };
}

test("standard input is read to its end, which is the end of the broadcast", async () => {
  const { source, child } = await piped(20, 'cat "$1"');
  const heard = await hear(source.input);
  assertEquals(losses(heard), []);
  assertEquals(dataOf(heard), CLIP);
  assertEquals(await child.exited, 0);
});

test("standard input that falls silent is reported lost, and continues", async () => {
  const { source, child, ports } = await piped(20, 'cat "$1"; read go; cat "$1"');
  let isLost = false;
  const heard = hear(source.input, (soFar) => {
    isLost = losses(soFar).length > 0;
    return false;
  });
  await until("standard input to be lost", () => isLost);
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode("go\n"));
  await writer.close();
  assertEquals((await heard).map((one) => "lost" in one ? one.lost : one.data.length), [
    CLIP.length,
    "nothing came for 5 s",
    CLIP.length,
  ]);
  assertEquals(ports.lines, []);
});

test("standard input that is no MPEG TS is refused with what to do", async () => {
  const { source } = await piped(1, "head -c 100000 /dev/zero");
  const error = await assertRejects(() => hear(source.input), MillraceError);
  assertEquals(error.code, "unsupported_media");
  assertMatch(error.message, /-f mpegts -/);
});

test("standard input that never says anything is left at once when it is no longer read", async () => {
  const { source, child } = await piped(1, "exec sleep 600");
  const events = source.input[Symbol.asyncIterator]();
  const pending = events.next();
  await events.return!();
  assertEquals((await pending).done, true);
  child.kill("SIGKILL");
  await child.exited;
});
