import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import net from "node:net";
import type { EndedSockets } from "../../platform/shared/http-connections.ts";
import { createHttpPort, HTTP_LIMITS } from "../../platform/shared/http-server.ts";
import { deferred, LOOPBACK, turns } from "./support.ts";
import { CHUNK, endless, raw, withServer } from "./http-support.ts";

/** A client that sends `head` and at once closes its sending side. */
function halfClosing(base: string, head: string): net.Socket {
  const socket = net.connect({ port: Number(new URL(base).port), host: "127.0.0.1", allowHalfOpen: true });
  socket.end(head);
  return socket;
}

async function textOf(socket: net.Socket): Promise<string> {
  let text = "";
  for await (const chunk of socket) text += chunk;
  return text;
}

test("HttpPort.serve() answers a client that closes its sending side right after the request", () =>
  withServer(async () => {
    // The client's end arrives meanwhile.
    await turns(20);
    return new Response("the whole answer");
  }, async (base) => {
    for (let i = 0; i < 20; i++) {
      const text = await textOf(halfClosing(base, `GET /${i} HTTP/1.1\r\nHost: x\r\n\r\n`));
      assert(text.startsWith("HTTP/1.1 200 ") && text.includes("the whole answer"), `${i}: ${JSON.stringify(text)}`);
    }
  }));

test("HttpPort.serve() sends a long body to a client that closed its sending side", () => {
  const parts = 50;
  let got = 0;
  let more = () => {};
  return withServer(() => {
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        if (sent === parts) return controller.close();
        // Each part is made when the client has the one before: its end arrived long ago.
        if (got < sent * CHUNK) await new Promise<void>((resolve) => more = resolve);
        sent++;
        controller.enqueue(new Uint8Array(CHUNK));
      },
    }, { highWaterMark: 0 });
    return new Response(body, { headers: { "content-length": String(parts * CHUNK), "x-end": "1" } });
  }, async (base) => {
    const socket = halfClosing(base, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    let headBytes = 0;
    for await (const chunk of socket as AsyncIterable<Uint8Array>) {
      const end = headBytes === 0 ? Buffer.from(chunk).indexOf("\r\n\r\n") + 4 : 0;
      headBytes += end;
      got += chunk.length - end;
      more();
    }
    assertEquals(got, parts * CHUNK);
  });
});

test("HttpPort.serve() cancels a waiting body of a client that closed its sending side", () => {
  const cancelled = deferred("cancel()");
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new Uint8Array(10)),
    pull: () => new Promise<void>(() => {}),
    cancel: () => cancelled.resolve(),
  });
  return withServer(() => new Response(body), async (base) => {
    const socket = halfClosing(base, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    socket.on("error", () => {}).resume();
    await cancelled.promise;
    socket.destroy();
  });
});

test("HttpPort.serve() fails a request body that its client ends too early", () => {
  const failed = deferred<unknown>("the body to fail");
  return withServer(async (request) => {
    await request.text().then(() => failed.resolve(null), (error) => failed.resolve(error));
    return new Response();
  }, async (base) => {
    const socket = halfClosing(base, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nten bytes.");
    socket.on("error", () => {}).resume();
    await assertRejects(async () => {
      const error = await failed.promise;
      if (error !== null) throw error;
    });
    socket.destroy();
  });
});

test("HttpPort.serve() closes a kept connection when its client closes its sending side", () =>
  withServer(() => new Response("first"), async (base) => {
    const socket = await raw(base, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    const closed = deferred("the connection's end");
    socket.once("data", () => socket.end());
    socket.once("end", () => closed.resolve());
    await closed.promise;
    socket.destroy();
  }));

test("createHttpPort() keeps the connection of a client that takes nothing for a while", async () => {
  const { state, body } = endless();
  const waits = new ReadableStream<Uint8Array>({ pull: () => new Promise<void>(() => {}) });
  // Meanwhile all clients seem to send no more, and count as gone soon.
  let isStalled = false;
  const ended: EndedSockets = (sockets) => Promise.resolve(isStalled ? sockets : []);
  const port = createHttpPort({ limits: { ...HTTP_LIMITS, quietMs: 1 }, ended });
  const server = await port.serve(LOOPBACK, ({ url }) => new Response(url.endsWith("/waits") ? waits : body));
  const base = `http://127.0.0.1:${server.address.port}`;
  const slow = await raw(base, "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  slow.pause();
  for (let still = 0, last = -1; still < 200; still = state.pulledBytes === last ? still + 1 : 0) {
    last = state.pulledBytes;
    await turns();
  }
  const stalledAt = state.pulledBytes;
  isStalled = true;
  const left = deferred("the client that waits to be dropped");
  const quiet = await raw(base, "GET /waits HTTP/1.1\r\nHost: x\r\n\r\n");
  quiet.on("close", () => left.resolve()).resume();
  await left.promise;
  isStalled = false;
  const more = deferred("the slow client to get more");
  let received = 0;
  slow.on("data", (chunk) => {
    received += chunk.length;
    if (received > stalledAt + 8 * 1024 * 1024) more.resolve();
  });
  slow.resume();
  await more.promise;
  slow.destroy();
  await server.close(0);
});
