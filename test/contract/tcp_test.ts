import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { hasCode, MillraceError } from "../../src/errors.ts";
import type { TcpConnection } from "../../src/ports.ts";
import { deferred, LOOPBACK, ports, Recorder, soon, turns, withPair } from "./support.ts";
import { noise } from "../support/random.ts";

const text = new TextEncoder();

async function rejectsWith(code: MillraceError["code"], run: () => Promise<unknown>): Promise<void> {
  const error = await assertRejects(run, MillraceError);
  assertEquals(error.code, code, error.message);
}

test("TcpPort.connect() and listen() carry bytes both ways and know their addresses", () =>
  withPair(async ({ client, server, atClient, atServer }) => {
    assertEquals(client.remote.port, server.local.port);
    assertEquals(client.local.port, server.remote.port);
    assertEquals([client.remote.host, server.remote.host], ["127.0.0.1", "127.0.0.1"]);
    client.write(text.encode("question"));
    await atServer.has(8);
    server.write(text.encode("answer"));
    await atClient.has(6);
    assertEquals(new TextDecoder().decode(atServer.bytes()), "question");
    assertEquals(new TextDecoder().decode(atClient.bytes()), "answer");
  }));

test("TcpPort.listen() at :: takes both families, and knows IPv4 callers by their own address", async () => {
  const seen: string[] = [];
  const both = deferred("two connections");
  const listener = await ports.tcp.listen({ host: "::", port: 0 }, (connection) => {
    seen.push(connection.remote.host);
    const recorder = new Recorder();
    connection.open(recorder);
    void recorder.closed.promise.catch(() => {});
    if (seen.length === 2) both.resolve();
  });
  for (const host of ["127.0.0.1", "::1"]) {
    const client = await ports.tcp.connect({ host, port: listener.address.port }, { signal: soon() });
    const recorder = new Recorder();
    client.open(recorder);
    client.abort();
    await recorder.closed.promise;
  }
  await both.promise;
  assertEquals(seen, ["127.0.0.1", "::1"]);
  await listener.close();
});

test("TcpConnection.open() calls no handler before it returns", async () => {
  const listener = await ports.tcp.listen(LOOPBACK, (connection) => {
    const recorder = new Recorder();
    connection.open(recorder);
    connection.write(text.encode("early"));
    void recorder.closed.promise.catch(() => {});
  });
  const client = await ports.tcp.connect(listener.address, { signal: soon() });
  let returned = false;
  const recorder = new Recorder();
  const first = deferred<boolean>("the first byte");
  recorder.onData = () => first.resolve(returned);
  client.open(recorder);
  returned = true;
  assertEquals(await first.promise, true);
  client.abort();
  await recorder.closed.promise;
  await listener.close();
});

test("TcpConnection carries large and tiny chunks in order without changing them", () =>
  withPair(async ({ client, atClient, atServer }) => {
    const whole = noise(3_000_000);
    const sizes = [1, 17, 13, 16384, 5, 1024, 1025, 70_000, 300_000];
    let at = 0;
    let blocked: (() => void) | null = null;
    const done = deferred("everything to be written");
    const pump = () => {
      blocked = null;
      for (let i = 0; at < whole.length; i++) {
        const end = Math.min(whole.length, at + sizes[i % sizes.length]!);
        const goOn = client.write(whole.subarray(at, end));
        at = end;
        if (!goOn) {
          blocked = pump;
          return;
        }
      }
      done.resolve();
    };
    pump();
    atClient.onDrain = () => blocked?.();
    await done.promise;
    await atServer.has(whole.length);
    assertEquals(Buffer.compare(atServer.bytes(), whole), 0);
  }));

test("TcpConnection.write() sends the small writes of one turn together", () =>
  withPair(async ({ client, atServer }) => {
    client.write(new Uint8Array(1));
    await atServer.has(1);
    const before = atServer.received.length;
    for (let i = 0; i < 200; i++) client.write(new Uint8Array(17));
    await atServer.has(1 + 200 * 17);
    assert(atServer.received.length - before <= 3, `${atServer.received.length - before} reads`);
  }));

test("TcpConnection.write() answers false above 256 KiB and drain() follows below 64 KiB", () =>
  withPair(async ({ client, server, atClient, atServer }) => {
    server.pause();
    atServer.keep = false;
    const block = new Uint8Array(16384);
    let written = 0;
    // The kernel's buffers take some megabytes at first; then the queue fills.
    for (let round = 0; round < 4000 && (written === 0 || client.bufferedBytes <= 256 * 1024); round++) {
      const goOn = client.write(block);
      written += block.length;
      assertEquals(goOn, client.bufferedBytes <= 256 * 1024);
      if (!goOn) await turns(2);
    }
    assert(client.bufferedBytes > 256 * 1024, "the queue never filled");
    assertEquals(client.write(block), false);
    written += block.length;
    const drained = deferred<number>("drain");
    atClient.onDrain = () => drained.resolve(client.bufferedBytes);
    server.resume();
    assert(await drained.promise < 64 * 1024);
    await atServer.has(written);
    assertEquals(atServer.receivedBytes, written);
  }));

test("TcpConnection.pause() stops data until resume()", () =>
  withPair(async ({ client, server, atServer }) => {
    client.write(new Uint8Array(10));
    await atServer.has(10);
    server.pause();
    const at = atServer.receivedBytes;
    client.write(new Uint8Array(8 * 1024 * 1024));
    await turns(30);
    assert(atServer.receivedBytes - at <= 256 * 1024, `${atServer.receivedBytes - at} bytes while paused`);
    assert(client.bufferedBytes > 0, "the window stayed open");
    server.resume();
    await atServer.has(at + 8 * 1024 * 1024);
  }));

test("TcpConnection.pause() from within data() holds at once and resume() loses nothing", () =>
  withPair(async ({ client, server, atServer }) => {
    const whole = noise(2_000_000);
    const all = deferred("all bytes");
    let calls = 0;
    atServer.onData = () => {
      calls++;
      server.pause();
      if (atServer.receivedBytes === whole.length) all.resolve();
      setTimeout(() => server.resume(), 0);
    };
    client.write(whole);
    await all.promise;
    assert(calls > 1);
    assertEquals(Buffer.compare(atServer.bytes(), whole), 0);
  }));

test("TcpConnection.end() half-closes after the queue was sent; the other direction stays open", () =>
  withPair(async ({ client, server, atClient, atServer }) => {
    client.write(new Uint8Array(1_000_000));
    client.end();
    assertEquals(client.write(new Uint8Array(1)), false);
    await atServer.ended.promise;
    assertEquals(atServer.receivedBytes, 1_000_000);
    assertEquals([atClient.closeCalls, atServer.closeCalls], [0, 0]);
    server.write(new Uint8Array(500_000));
    await atClient.has(500_000);
    server.end();
    assertEquals(await atClient.closed.promise, undefined);
    assertEquals(await atServer.closed.promise, undefined);
    await turns(5);
    assertEquals([atClient.closeCalls, atServer.closeCalls], [1, 1]);
  }));

test("TcpConnection.abort() drops both ends; close() comes once and is the last call", () =>
  withPair(async ({ client, server, atClient, atServer }) => {
    server.write(new Uint8Array(100_000));
    await atClient.has(1);
    client.abort();
    client.abort();
    assertEquals(await atClient.closed.promise, undefined);
    const seen = atClient.receivedBytes;
    const gone = Promise.race([atServer.ended.promise, atServer.closed.promise]);
    await gone;
    server.abort();
    await atServer.closed.promise;
    await turns(5);
    assertEquals([atClient.closeCalls, atServer.closeCalls, atClient.receivedBytes], [1, 1, seen]);
    assertEquals(client.write(new Uint8Array(1)), false);
  }));

test("TcpConnection.abort() works while paused and with a full queue", () =>
  withPair(async ({ client, server, atClient }) => {
    server.pause();
    for (let i = 0; i < 40; i++) client.write(new Uint8Array(1024 * 1024));
    await turns(3);
    client.pause();
    client.abort();
    await atClient.closed.promise;
    assertEquals(atClient.closeCalls, 1);
  }));

test("TcpConnection reports a connection that the far end reset", () =>
  withPair(async ({ client, server, atClient, atServer }) => {
    // Data that the other side never read makes its close a reset.
    server.pause();
    client.write(new Uint8Array(100_000));
    await turns(5);
    server.abort();
    const error = await Promise.race([
      atClient.closed.promise,
      atClient.ended.promise.then(() => {
        client.write(new Uint8Array(1000));
        return atClient.closed.promise;
      }),
    ]);
    assert(error === undefined || hasCode(error, "connection_failed"), String(error));
    await atServer.closed.promise;
  }));

test("TcpPort.connect() rejects with connection_failed when nobody listens", async () => {
  const listener = await ports.tcp.listen(LOOPBACK, (connection) => connection.abort());
  await listener.close();
  await rejectsWith("connection_failed", () => ports.tcp.connect(listener.address, { signal: soon() }));
});

test("TcpPort.connect() rejects with connection_failed when the name does not exist", () =>
  rejectsWith(
    "connection_failed",
    () => ports.tcp.connect({ host: "no-such-host.invalid", port: 80 }, { signal: soon() }),
  ));

test("TcpPort.connect() rejects with aborted or timeout when its signal fires", async () => {
  // Documentation addresses (RFC 5737) never answer.
  const nobody = { host: "192.0.2.1", port: 9 };
  await rejectsWith("aborted", () => ports.tcp.connect(nobody, { signal: AbortSignal.abort() }));
  const giveUp = new AbortController();
  const pending = ports.tcp.connect(nobody, { signal: giveUp.signal });
  const outcome = pending.then(() => null, (error) => error);
  giveUp.abort();
  const error = await outcome;
  // Where the network is known to be unreachable the refusal may come first.
  assert(hasCode(error, "aborted") || hasCode(error, "connection_failed"), String(error));
  const late = await ports.tcp.connect(nobody, { signal: AbortSignal.timeout(50) }).then(() => null, (e) => e);
  assert(hasCode(late, "timeout") || hasCode(late, "connection_failed"), String(late));
});

test("TcpPort.listen() rejects with conflict when the port is taken", async () => {
  const listener = await ports.tcp.listen(LOOPBACK, (connection) => connection.abort());
  await rejectsWith("conflict", () => ports.tcp.listen(listener.address, (connection) => connection.abort()));
  await listener.close();
});

test("TcpListener.close() frees the port and keeps connections open", async () => {
  const accepted = deferred<TcpConnection>("a connection");
  const atServer = new Recorder();
  const listener = await ports.tcp.listen(LOOPBACK, (connection) => {
    connection.open(atServer);
    accepted.resolve(connection);
  });
  const client = await ports.tcp.connect(listener.address, { signal: soon() });
  const atClient = new Recorder();
  client.open(atClient);
  const server = await accepted.promise;
  await listener.close();
  await rejectsWith("connection_failed", () => ports.tcp.connect(listener.address, { signal: soon() }));
  client.write(text.encode("still here"));
  await atServer.has(10);
  server.end();
  client.end();
  await Promise.all([atClient.closed.promise, atServer.closed.promise]);
  const again = await ports.tcp.listen(listener.address, (connection) => connection.abort());
  await again.close();
});

test("TcpPort works over IPv6 loopback", async () => {
  const listening = await ports.tcp.listen({ host: "::1", port: 0 }, (connection) => {
    const recorder = new Recorder();
    connection.open(recorder);
    void recorder.has(2).then(() => connection.end());
    void recorder.ended.promise.then(() => connection.end());
  }).catch((error) => error);
  if (listening instanceof Error) {
    assert(!ports.network.interfaces().some(({ family, loopback }) => family === 6 && loopback), String(listening));
    return;
  }
  const client = await ports.tcp.connect(listening.address, { signal: soon() });
  const recorder = new Recorder();
  client.open(recorder);
  assertEquals(client.remote.host, "::1");
  client.write(text.encode("hi"));
  await recorder.ended.promise;
  client.end();
  await recorder.closed.promise;
  await listening.close();
});
