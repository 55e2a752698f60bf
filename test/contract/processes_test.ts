import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { deferred, ports, turns } from "./support.ts";
import { concatBytes } from "../../src/bytes/hex.ts";
import { noise } from "../support/random.ts";

async function all(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return concatBytes(chunks);
}

const shell = (script: string, env?: Record<string, string>) =>
  ports.processes.spawn("/bin/sh", ["-c", script], env === undefined ? undefined : { env });

test("ProcessPort.spawn() pipes standard input through and answers the exit code", async () => {
  const child = await ports.processes.spawn("cat", []);
  assert(child.pid > 0);
  const sent = noise(1_000_000);
  const received = all(child.stdout);
  const writer = child.stdin.getWriter();
  for (let at = 0; at < sent.length; at += 65_536) await writer.write(sent.subarray(at, at + 65_536));
  await writer.close();
  assertEquals(Buffer.compare(await received, sent), 0);
  assertEquals(await child.exited, 0);
});

test("ProcessPort.spawn() keeps output and errors apart, passes variables and reports failures", async () => {
  const child = await shell('echo "out $MILLRACE_TEST"; echo err >&2; exit 7', { MILLRACE_TEST: "42" });
  const [out, err] = await Promise.all([all(child.stdout), all(child.stderr)]);
  assertEquals(new TextDecoder().decode(out), "out 42\n");
  assertEquals(new TextDecoder().decode(err), "err\n");
  assertEquals(await child.exited, 7);
});

test("ProcessPort.spawn() passes arguments as they are, without a shell", async () => {
  const child = await ports.processes.spawn("printf", ["%s|", "a b", "$HOME", "*", ""]);
  assertEquals(new TextDecoder().decode(await all(child.stdout)), "a b|$HOME|*||");
  assertEquals(await child.exited, 0);
});

test("ProcessPort.spawn() rejects with unavailable when there is no such command", async () => {
  const error = await assertRejects(() => ports.processes.spawn("no-such-command-millrace", []), MillraceError);
  assertEquals(error.code, "unavailable");
});

test("ChildProcess.kill() ends the process; the code is 128 + the signal", async () => {
  for (const [signal, code] of [["SIGTERM", 143], ["SIGKILL", 137]] as const) {
    const child = await ports.processes.spawn("sleep", ["60"]);
    child.kill(signal);
    assertEquals(await child.exited, code);
    child.kill();
  }
});

test("ChildProcess.kill() reports the exit code of a child that handles the signal", async () => {
  const child = await shell("trap 'exit 5' TERM; echo up; while :; do sleep 0.01; done");
  const reader = child.stdout.getReader();
  await reader.read();
  child.kill("SIGTERM");
  assertEquals(await child.exited, 5);
  await reader.cancel();
});

test("ChildProcess.stdout blocks the child while nobody reads, and cancel() ends it", async () => {
  const child = await shell("while :; do printf '%65536s' x; printf . >&2; done");
  let steps = 0;
  const quiet = deferred("the child to be stopped by a full pipe");
  let last = -1;
  const watch = async () => {
    for (let still = 0; still < 20; still = steps === last ? still + 1 : 0) {
      last = steps;
      await turns(5);
    }
    quiet.resolve();
  };
  const counting = (async () => {
    for await (const chunk of child.stderr) steps += chunk.length;
  })();
  const reader = child.stdout.getReader();
  await reader.read();
  void watch();
  await quiet.promise;
  assert(steps < 64, `${steps} blocks of 64 KiB were swallowed`);
  await reader.cancel();
  assert(await child.exited !== 0);
  await counting;
});

test("ChildProcess.stdin rejects writes to a child that is gone", async () => {
  const child = await shell("exit 0");
  await child.exited;
  const writer = child.stdin.getWriter();
  writer.closed.catch(() => {});
  await assertRejects(async () => {
    for (let i = 0; i < 100; i++) await writer.write(new Uint8Array(65_536));
  });
});
