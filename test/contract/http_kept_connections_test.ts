import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { createHttpClient } from "../../platform/shared/http-client.ts";
import { MillraceError } from "../../src/errors.ts";
import type { HttpClientPort } from "../../src/ports.ts";
import { until } from "../support/until.ts";
import { serveWeb } from "../support/web.ts";
import { soon } from "./support.ts";

/** The text at `url`, whose host name cannot be resolved, from `address`. */
async function textAt(client: HttpClientPort, url: string, address = "127.0.0.1"): Promise<string> {
  const { body } = await client.open({
    url: new URL(url),
    address,
    method: "GET",
    headers: new Headers(),
    signal: soon(),
  });
  return await new Response(body).text();
}

test("HttpClientPort.open() uses a connection again for the same name and address, and no other", async () => {
  let connections = 0;
  const web = await serveWeb((request, response) => {
    if (request.socket.listenerCount("close", countClosed) === 0) {
      connections++;
      request.socket.on("close", countClosed);
    }
    response.end("text");
  });
  let closed = 0;
  function countClosed() {
    closed++;
  }
  const client = createHttpClient({ idleMs: 200 });
  const ask = async (url: string, address?: string) => assertEquals(await textAt(client, url, address), "text");
  try {
    const url = `http://name.invalid:${web.port}/`;
    for (let i = 0; i < 5; i++) await ask(url);
    assertEquals(connections, 1);
    await ask(`http://other.invalid:${web.port}/`);
    assertEquals(connections, 2);
    await assertRejects(() => ask(url, "127.0.0.2"), MillraceError);
    // Idle ones are closed, and no more are kept than a few.
    await Promise.all(Array.from({ length: 12 }, () => ask(url)));
    await until("all idle connections are closed", () => closed === connections);
  } finally {
    await web.close();
  }
});

test("HttpClientPort.open() asks again when the server has just closed the kept connection", async () => {
  let asked = 0;
  const web = await serveWeb((request, response) => {
    // Every second request meets a connection that is gone.
    if (++asked % 2 === 0) request.socket.destroy();
    else response.end("text");
  });
  const client = createHttpClient();
  try {
    for (let i = 0; i < 3; i++) assertEquals(await textAt(client, `http://name.invalid:${web.port}/`), "text");
    assertEquals(asked, 5);
  } finally {
    await web.close();
  }
});
