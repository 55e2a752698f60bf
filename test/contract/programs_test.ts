import { chmod, stat, writeFile } from "node:fs/promises";
import net from "node:net";
import path from "node:path";
import process from "node:process";
import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { ports, soon, withDirectory } from "./support.ts";

test("ProgramPort.find() finds a name on the PATH and a program by its path, and nothing that cannot be run", async () => {
  const shell = await ports.programs.find("sh");
  assert(shell !== null && path.isAbsolute(shell), `sh: ${shell}`);
  assertEquals(await ports.programs.find(shell), shell);
  assertEquals(await ports.programs.find("no-such-program-millrace"), null);
  await withDirectory(async (directory) => {
    const file = `${directory}/player`;
    await writeFile(file, "#!/bin/sh\n");
    await chmod(file, 0o644);
    assertEquals(await ports.programs.find(file), null, "not executable");
    await chmod(file, 0o755);
    assertEquals(await ports.programs.find(file), file);
    assertEquals(await ports.programs.find(directory), null, "a directory");
  });
});

test("LocalSocketPort.newAddress() makes a directory that only this user enters, and remove() removes it", async () => {
  const address = await ports.localSockets.newAddress();
  const directory = path.dirname(address.path);
  const { mode, uid } = await stat(directory);
  assertEquals(mode & 0o777, 0o700);
  assertEquals(uid, process.getuid?.());
  await address.remove();
  await assertRejects(() => stat(directory));
});

test("LocalSocketPort.connect() carries bytes both ways, and rejects while nobody listens", async () => {
  const address = await ports.localSockets.newAddress();
  const connect = () => ports.localSockets.connect(address.path, { signal: soon() });
  const refused = await assertRejects(connect, MillraceError);
  assertEquals(refused.code, "connection_failed");
  const server = net.createServer((socket) => {
    socket.on("error", () => {});
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(address.path, resolve));
  try {
    const connection = await connect();
    const writer = connection.writable.getWriter();
    const reader = connection.readable.getReader();
    await writer.write(new TextEncoder().encode("to and fro"));
    let text = "";
    while (text.length < 10) text += new TextDecoder().decode((await reader.read()).value);
    assertEquals(text, "to and fro");
    connection.close();
    connection.close();
    assertEquals((await reader.read().catch(() => ({ done: true }))).done, true);
    const aborted = new AbortController();
    aborted.abort(new MillraceError("aborted", "enough"));
    await assertRejects(
      () => ports.localSockets.connect(address.path, { signal: aborted.signal }),
      MillraceError,
      "enough",
    );
  } finally {
    await new Promise<void>((resolve) => server.close(() => resolve()));
    await address.remove();
  }
});
