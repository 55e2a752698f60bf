import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { setImmediate } from "node:timers";
import { concatBytes } from "../../src/bytes/hex.ts";
import { FREED, lendChunks } from "../../src/bytes/lent-chunks.ts";
import { deferred, LOOPBACK, ports, soon, turns } from "./support.ts";
import { noise } from "../support/random.ts";
import { until } from "../support/until.ts";
import { CHUNK, endless, type Handler, raw, withServer } from "./http-support.ts";

test("HttpPort.serve() passes method, URL, headers, body and the caller's address", () =>
  withServer(async (request, info) =>
    Response.json({
      method: request.method,
      url: request.url,
      header: request.headers.get("x-test"),
      body: await request.text(),
      remote: info.remote,
    }, { status: 207, headers: { "x-answer": "yes" } }), async (base) => {
    const got = await fetch(`${base}/a%20b?c=1&c=2`, {
      method: "POST",
      headers: { "x-test": "value" },
      body: "payload",
      signal: soon(),
    });
    assertEquals([got.status, got.headers.get("x-answer")], [207, "yes"]);
    const seen = await got.json();
    assertEquals([seen.method, seen.url, seen.header, seen.body], [
      "POST",
      `${base}/a%20b?c=1&c=2`,
      "value",
      "payload",
    ]);
    assertEquals(seen.remote.host, "127.0.0.1");
    assert(seen.remote.port > 0);
  }));

test("HttpPort.serve() answers HEAD without a body and keeps Content-Length", () =>
  withServer(() => new Response("12345", { headers: { "content-length": "5" } }), async (base) => {
    const got = await fetch(base, { method: "HEAD", signal: soon() });
    assertEquals([got.status, got.headers.get("content-length"), await got.text()], [200, "5", ""]);
    assertEquals(await (await fetch(base, { signal: soon() })).text(), "12345");
  }));

test("HttpPort.serve() keeps the Content-Length of a streamed body", async () => {
  const server = await ports.http.serve(LOOPBACK, () => {
    let left = 10;
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => left-- > 0 ? controller.enqueue(new Uint8Array(1000)) : controller.close(),
    });
    return new Response(body, { status: 206, headers: { "content-length": "10000" } });
  });
  const got = await fetch(`http://127.0.0.1:${server.address.port}`, { signal: soon() });
  assertEquals([got.headers.get("content-length"), got.headers.get("transfer-encoding")], ["10000", null]);
  assertEquals((await got.arrayBuffer()).byteLength, 10000);
  await server.close(0);
});

test("HttpPort.serve() invents no Content-Length for HEAD", async () => {
  const server = await ports.http.serve(LOOPBACK, () => new Response(null, { headers: { "accept-ranges": "none" } }));
  const got = await fetch(`http://127.0.0.1:${server.address.port}`, { method: "HEAD", signal: soon() });
  assertEquals([got.status, got.headers.get("content-length")], [200, null]);
  await server.close(0);
});

test("HttpPort.serve() streams large request and response bodies unchanged", () => {
  const sent = new Uint8Array(noise(5_000_000));
  return withServer((request) => new Response(request.body), async (base) => {
    const got = await fetch(base, { method: "POST", body: sent, signal: soon() });
    assertEquals(Buffer.compare(new Uint8Array(await got.arrayBuffer()), sent), 0);
  });
});

test("HttpPort.serve() sends chunks that are freed unchanged, and frees them", () => {
  const sent: Uint8Array[] = [];
  const expected: Uint8Array[] = [];
  return withServer(() => {
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (sent.length === 20) return controller.close();
        const chunk = new Uint8Array(noise(300_000));
        expected.push(chunk.slice());
        sent.push(chunk);
        controller.enqueue(chunk);
      },
    });
    lendChunks(body, FREED);
    return new Response(body);
  }, async (base) => {
    const got = await (await fetch(base, { signal: soon() })).arrayBuffer();
    assertEquals(Buffer.compare(new Uint8Array(got), concatBytes(expected)), 0);
    await until("the chunks are freed", () => sent.every(({ buffer }) => buffer.byteLength === 0));
  });
});

test("HttpPort.serve() sends each chunk when it is there, however small", () => {
  const release = deferred("the client to have the first chunk");
  const body = () =>
    new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode("first "));
      },
      async pull(controller) {
        await release.promise;
        controller.enqueue(new TextEncoder().encode("second"));
        controller.close();
      },
    }, { highWaterMark: 0 });
  return withServer(() => new Response(body()), async (base) => {
    const reader = (await fetch(base, { signal: soon() })).body!.getReader();
    assertEquals(new TextDecoder().decode((await reader.read()).value), "first ");
    release.resolve();
    assertEquals(new TextDecoder().decode((await reader.read()).value), "second");
  });
});

test("HttpPort.serve() answers 500 when the handler throws, and works on", () => {
  let calls = 0;
  return withServer(() => {
    if (calls++ === 0) throw new Error("secret detail");
    return new Response("fine");
  }, async (base) => {
    const got = await fetch(base, { signal: soon() });
    assertEquals(got.status, 500);
    assert(!(await got.text()).includes("secret"));
    assertEquals(await (await fetch(base, { signal: soon() })).text(), "fine");
  });
});

test("HttpPort.serve() cuts the connection when a body fails midway", () =>
  withServer(() => {
    let pulls = 0;
    return new Response(
      new ReadableStream<Uint8Array>({
        pull(controller) {
          if (pulls++ < 3) controller.enqueue(new Uint8Array(1000));
          else controller.error(new Error("the piece is gone"));
        },
      }),
      { headers: { "content-length": "1000000" } },
    );
  }, async (base) => {
    await assertRejects(async () => await (await fetch(base, { signal: soon() })).arrayBuffer());
  }));

test("HttpPort.serve() cancels the body when the client leaves while it is sent", () => {
  const { state, body } = endless();
  return withServer(() => new Response(body), async (base) => {
    const leave = new AbortController();
    const got = await fetch(base, { signal: leave.signal });
    await got.body!.getReader().read();
    leave.abort();
    await state.cancelled;
  });
});

test("HttpPort.serve() cancels a body that waits for data when the client leaves", () => {
  const cancelled = deferred("cancel()");
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(new Uint8Array(10));
    },
    pull: () => new Promise<void>(() => {}),
    cancel: () => cancelled.resolve(),
  });
  return withServer(() => new Response(body), async (base) => {
    const socket = await raw(base, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await new Promise((resolve) => socket.once("data", resolve));
    socket.destroy();
    await cancelled.promise;
  });
});

test("HttpPort.serve() aborts the request's signal when the client leaves before the answer", () => {
  const aborted = deferred("the signal");
  const arrived = deferred("the request");
  return withServer(async (request) => {
    request.signal.addEventListener("abort", () => aborted.resolve());
    arrived.resolve();
    await aborted.promise;
    return new Response("nobody hears this");
  }, async (base) => {
    const socket = await raw(base, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await arrived.promise;
    socket.destroy();
    await aborted.promise;
  });
});

test("HttpPort.serve() cuts the connection when a body fails while its client takes nothing", () => {
  const cut = deferred("the connection's end");
  let pulls = 0;
  let fail = () => {};
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => void (fail = () => controller.error(new Error("it paused for too long"))),
    pull(controller) {
      pulls++;
      controller.enqueue(new Uint8Array(CHUNK));
    },
  });
  return withServer((request) => {
    request.signal.addEventListener("abort", () => cut.resolve());
    return new Response(body);
  }, async (base) => {
    const socket = await raw(base, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    socket.pause();
    for (let still = 0, last = -1; still < 20; still = pulls === last ? still + 1 : 0) {
      last = pulls;
      await turns(3);
    }
    fail();
    await cut.promise;
    socket.destroy();
  });
});

test("HttpPort.serve() stops pulling for a stalled reader and resumes when it reads again", () => {
  const { state, body } = endless();
  return withServer(() => new Response(body), async (base) => {
    const socket = await raw(base, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    socket.pause();
    for (let still = 0, last = -1; still < 20; still = state.pulledBytes === last ? still + 1 : 0) {
      last = state.pulledBytes;
      await turns(3);
    }
    const stalledAt = state.pulledBytes;
    // The kernel's buffers of both ends hold some megabytes on loopback; the rest would be ours.
    assert(stalledAt < 16 * 1024 * 1024, `${stalledAt} bytes pulled for a reader that reads nothing`);
    const more = deferred("more pulls");
    let received = 0;
    socket.on("data", (chunk) => {
      received += chunk.length;
      if (received > stalledAt + 8 * 1024 * 1024) more.resolve();
    });
    socket.resume();
    await more.promise;
    socket.destroy();
    await state.cancelled;
  });
});

test("HttpPort.serve() lets the event loop turn while it sends bodies that are at hand", () => {
  const both = deferred("both requests");
  let requests = 0;
  let sinceTurn = 0;
  let most = 0;
  let over = false;
  const turn = () => {
    sinceTurn = 0;
    if (!over) setImmediate(turn);
  };
  turn();
  return withServer(async () => {
    if (++requests === 2) both.resolve();
    await both.promise;
    let left = 16;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (left-- === 0) return controller.close();
        most = Math.max(most, ++sinceTurn);
        controller.enqueue(new Uint8Array(CHUNK));
      },
    }, { highWaterMark: 0 });
    return new Response(body);
  }, async (base) => {
    // The kernel takes as much for clients that have not begun to read.
    const answers = await Promise.all(["/a", "/b"].map((path) => fetch(base + path)));
    await Promise.all(answers.map((answer) => answer.arrayBuffer()));
    over = true;
    assert(most <= 8, `${most} chunks were sent in one turn: nobody else was heard meanwhile`);
  });
});

test("HttpPort.serve() delivers its response to a client whose endless body it does not want", async () => {
  const handlers: [string, Handler][] = [
    ["cancelled", async (request) => {
      await request.body?.cancel();
      return new Response("no, thanks", { status: 413 });
    }],
    ["read in part", async (request) => {
      const reader = request.body!.getReader();
      await reader.read();
      await reader.cancel();
      return new Response("no, thanks", { status: 413 });
    }],
    ["left alone", () => new Response("no, thanks", { status: 413 })],
  ];
  for (const [what, handler] of handlers) {
    await withServer(handler, async (base) => {
      const socket = await raw(base, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
      // The other side may hang up after its answer.
      socket.removeAllListeners("error").on("error", () => {});
      let text = "";
      const told = new Promise<void>((resolve) => {
        socket.once("close", () => resolve());
        socket.on("data", (chunk) => {
          text += chunk;
          if (text.includes("no, thanks")) resolve();
        });
      });
      const chunk = Buffer.from(`8000\r\n${"a".repeat(0x8000)}\r\n`);
      const send = () => {
        while (!socket.destroyed && socket.write(chunk));
        if (!socket.destroyed) socket.once("drain", send);
      };
      send();
      await told;
      socket.destroy();
      assert(text.startsWith("HTTP/1.1 413 "), `${what}: ${JSON.stringify(text)}`);
      assert(text.includes("no, thanks"), what);
    });
  }
});

test("HttpPort.serve() answers a client of HTTP/1.0", () =>
  withServer((request) => new Response(new URL(request.url).pathname), async (base) => {
    const socket = await raw(base, "GET /old HTTP/1.0\r\nHost: x\r\n\r\n");
    let text = "";
    for await (const chunk of socket) text += chunk;
    assert(text.startsWith("HTTP/1.") && text.includes(" 200 ") && text.includes("/old"), text);
  }));
