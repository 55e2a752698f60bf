/** Connections through a proxy that serve several requests. */
import { createServer } from "node:https";
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { createHttpClient } from "../../platform/shared/http-client.ts";
import { parseProxy } from "../../src/bytes/proxy-url.ts";
import type { HttpClientPort } from "../../src/ports.ts";
import { startProxy } from "../support/proxy.ts";
import { noise } from "../support/random.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "../support/tls.ts";
import { until } from "../support/until.ts";
import { listen, serveWeb, stop } from "../support/web.ts";
import { soon } from "./support.ts";

const BODY = noise(300_000, 3);

async function bodyAt(client: HttpClientPort, url: string, proxy: string, method: "GET" | "HEAD" = "GET") {
  const request = { url: new URL(url), address: new URL(url).hostname, headers: new Headers(), signal: soon() };
  const { body } = await client.open({ ...request, method, proxy: parseProxy(proxy) });
  return new Uint8Array(await new Response(body).arrayBuffer());
}

for (const kind of ["socks5", "http"] as const) {
  test(`HttpClientPort.open() asks again on the connection through a proxy (${kind}), and closes it when it is idle`, async () => {
    const proxy = await startProxy({ kind });
    let open = 0;
    const web = await serveWeb(({ url }, response) => {
      if (url === "/chunked") response.write(BODY.subarray(0, 10));
      if (url === "/length") response.setHeader("content-length", BODY.length);
      else if (url === "/close") response.setHeader("connection", "close");
      response.end(url === "/chunked" ? BODY.subarray(10) : BODY);
    });
    const secure = createServer(
      { cert: TEST_CERTIFICATE, key: TEST_KEY },
      (_, response) => void response.end("secret"),
    );
    const port = await listen(secure);
    secure.on("secureConnection", (socket) => {
      open++;
      socket.on("close", () => open--);
    });
    const client = createHttpClient({ ca: TEST_CERTIFICATE, idleMs: 200 });
    const film = `http://film.test:${web.port}`;
    try {
      for (const path of ["/length", "/chunked", "/length"]) {
        assertEquals(await bodyAt(client, film + path, proxy.url), BODY);
        assertEquals(await bodyAt(client, `${film}/length`, proxy.url, "HEAD"), new Uint8Array());
      }
      assertEquals(proxy.asked, [`film.test:${web.port}`]);
      // Another name at the same address is another server.
      assertEquals(await bodyAt(client, `http://other.test:${web.port}/length`, proxy.url), BODY);
      assertEquals(proxy.asked.length, 2);
      assertEquals(await bodyAt(client, `${film}/close`, proxy.url), BODY);
      assertEquals(await bodyAt(client, `${film}/length`, proxy.url), BODY);
      assertEquals(proxy.asked.length, 3);
      for (let i = 0; i < 3; i++) await bodyAt(client, `https://media.example:${port}/`, proxy.url);
      assertEquals([proxy.asked.length, open], [4, 1]);
      await until("the idle connection is closed", () => open === 0);
      assertEquals(proxy.faults, []);
    } finally {
      await web.close();
      await stop(secure);
      await proxy.close();
    }
  });
}

test("HttpClientPort.open() asks once more when the connection through a proxy has just been closed", async () => {
  const proxy = await startProxy();
  let asked = 0;
  const web = await serveWeb((request, response) => {
    // Every second request meets a connection that is gone.
    if (++asked % 2 === 0) request.socket.destroy();
    else response.end("text");
  });
  const client = createHttpClient();
  try {
    for (let i = 0; i < 3; i++) {
      const body = await bodyAt(client, `http://name.test:${web.port}/`, proxy.url);
      assertEquals(new TextDecoder().decode(body), "text");
    }
    assertEquals([asked, proxy.asked.length], [5, 3]);
  } finally {
    await web.close();
    await proxy.close();
  }
});

test("HttpClientPort.open() drops the connection through a proxy when a body is given up, or more comes than was asked for", async () => {
  const proxy = await startProxy();
  const web = await serveWeb(({ url, socket }, response) => {
    if (url === "/more") {
      socket.end("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ntextHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlies");
    } else if (url === "/never") response.write("first");
    else response.end("text");
  });
  const client = createHttpClient();
  const base = `http://name.test:${web.port}`;
  const text = async (path: string) => new TextDecoder().decode(await bodyAt(client, base + path, proxy.url));
  try {
    assertEquals([await text("/more"), await text("/")], ["text", "text"]);
    assertEquals(proxy.asked.length, 2);
    const url = new URL(`${base}/never`);
    const { body } = await client.open({
      ...{ url, address: "name.test", method: "GET", headers: new Headers(), signal: soon() },
      proxy: parseProxy(proxy.url),
    });
    await body.cancel();
    assertEquals([await text("/"), proxy.asked.length], ["text", 3]);
  } finally {
    await web.close();
    await proxy.close();
  }
});
