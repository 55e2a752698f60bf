import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { deferred, LOOPBACK, ports, soon, turns } from "./support.ts";
import { endless, withServer } from "./http-support.ts";
import { ownMs } from "../support/held-up.ts";

test("HttpPort.serve() rejects with conflict when the port is taken", () =>
  withServer(() => new Response(), async (_base, server) => {
    const error = await assertRejects(() => ports.http.serve(server.address, () => new Response()), MillraceError);
    assertEquals(error.code, "conflict");
  }));

test("HttpServer.close() lets a running response finish within the grace time", async () => {
  const release = deferred("close() to be under way");
  const server = await ports.http.serve(LOOPBACK, () =>
    new Response(
      new ReadableStream<Uint8Array>({
        async pull(controller) {
          controller.enqueue(new TextEncoder().encode("begun "));
          await release.promise;
          controller.enqueue(new TextEncoder().encode("done"));
          controller.close();
        },
      }, { highWaterMark: 0 }),
    ));
  const got = await fetch(`http://127.0.0.1:${server.address.port}`, { signal: soon() });
  const reader = got.body!.getReader();
  await reader.read();
  const closing = server.close(5000);
  await turns(3);
  const refused = await fetch(`http://127.0.0.1:${server.address.port}`, { signal: soon() }).then(
    (r) => r.status,
    () => 0,
  );
  assert(refused === 0 || refused === 503, `a new request was answered with ${refused}`);
  release.resolve();
  let text = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    text += new TextDecoder().decode(part.value);
  }
  assertEquals(text, "done");
  assert(await ownMs(() => closing) < 4000, "close() sat out its grace time");
});

test("HttpServer.close() drops what still runs when the grace time is over and frees the port", async () => {
  const { state, body } = endless();
  const server = await ports.http.serve(LOOPBACK, () => new Response(body));
  const got = await fetch(`http://127.0.0.1:${server.address.port}`, { signal: soon() });
  const reader = got.body!.getReader();
  await reader.read();
  const before = performance.now();
  const ownTimeMs = await ownMs(() => server.close(100));
  const tookMs = performance.now() - before;
  assert(tookMs >= 80 && ownTimeMs < 2000, `${tookMs} ms`);
  await state.cancelled;
  await assertRejects(async () => {
    while (!(await reader.read()).done);
    throw new Error("the body ended");
  });
  const again = await ports.http.serve(server.address, () => new Response());
  await again.close(0);
});
