import { createServer } from "node:https";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { createHttpClient } from "../../platform/shared/http-client.ts";
import { MillraceError } from "../../src/errors.ts";
import type { HttpClientPort } from "../../src/ports.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "../support/tls.ts";
import { until } from "../support/until.ts";
import { listen, serveWeb, stop } from "../support/web.ts";
import { ports, soon } from "./support.ts";

/** GETs `url`, whose host name cannot be resolved, at `address`. */
function request(
  url: string,
  more: { client?: HttpClientPort; signal?: AbortSignal; address?: string; isLenient?: boolean } = {},
) {
  return (more.client ?? ports.httpClient).open({
    isLenient: more.isLenient ?? false,
    url: new URL(url),
    address: more.address ?? "127.0.0.1",
    method: "GET",
    headers: new Headers({ "x-asked": "yes" }),
    signal: more.signal ?? soon(),
  });
}

test("HttpClientPort.open(): a body that breaks off errors, also one without a length", async () => {
  const web = await serveWeb(({ url, socket }: IncomingMessage, response) => {
    response.writeHead(200, url === "/length" ? { "content-length": "1000" } : {});
    response.write("abc", () => setTimeout(() => socket.destroy(), 20));
  });
  try {
    for (const path of ["/length", "/chunked"]) {
      const { body } = await request(web.base + path);
      const error = await assertRejects(() => new Response(body).text(), MillraceError);
      assertEquals(error.code, "connection_failed", path);
    }
  } finally {
    await web.close();
  }
});

test("HttpClientPort.open() ends when its signal fires while the response arrives", async () => {
  let control = new AbortController();
  const web = await serveWeb((_request: IncomingMessage, response) => {
    response.writeHead(200).write("abc", () => setImmediate(() => control.abort()));
  });
  try {
    for (let i = 0; i < 30; i++) {
      control = new AbortController();
      const answer = request(web.base, { signal: control.signal });
      await assertRejects(async () => new Response((await answer).body).text(), MillraceError);
    }
  } finally {
    await web.close();
  }
});

for (const isLenient of [false, true]) {
  const way = isLenient ? ", leniently" : "";
  const get = (url: string, more: Parameters<typeof request>[1] = {}) => request(url, { ...more, isLenient });

  test(`HttpClientPort.open() connects to the given address and sends the URL's host name${way}`, async () => {
    const web = await serveWeb(({ url, headers }, response) => {
      response.writeHead(299, { "set-cookie": ["a=1", "b=2"], "x-twice": "once" });
      response.end(JSON.stringify({ url, host: headers.host, asked: headers["x-asked"] }));
    });
    try {
      const { status, headers, body } = await get(`http://name.invalid:${web.port}/a%20b?c=1#d`);
      assertEquals([status, headers.get("x-twice"), headers.getSetCookie()], [299, "once", ["a=1", "b=2"]]);
      assertEquals(await new Response(body).json(), {
        url: "/a%20b?c=1",
        host: `name.invalid:${web.port}`,
        asked: "yes",
      });
    } finally {
      await web.close();
    }
  });

  test(`HttpClientPort.open() follows no redirect and unpacks nothing${way}`, async () => {
    const packed = gzipSync("text");
    const web = await serveWeb((request, response) => {
      if (request.url === "/moved") response.writeHead(302, { location: "/gzip" }).end();
      else response.writeHead(200, { "content-encoding": "gzip" }).end(packed);
    });
    try {
      assertEquals((await get(`${web.base}/moved`)).status, 302);
      const { headers, body } = await get(`${web.base}/gzip`);
      assertEquals(headers.get("content-encoding"), "gzip");
      assertEquals(new Uint8Array(await new Response(body).arrayBuffer()), new Uint8Array(packed));
    } finally {
      await web.close();
    }
  });

  test(`HttpClientPort.open() reads no faster than it is pulled, and cancel() drops the connection${way}`, async () => {
    let sentBytes = 0;
    let closed = false;
    const chunk = new Uint8Array(64 * 1024);
    const web = await serveWeb((_request, response: ServerResponse) => {
      response.on("close", () => (closed = true));
      const send = () => {
        while (!closed) {
          sentBytes += chunk.length;
          if (!response.write(chunk)) return void response.once("drain", send);
        }
      };
      send();
    });
    try {
      const { body } = await get(web.base);
      let last = -1;
      await until("the server to be held back", () => {
        const isStill = sentBytes === last;
        last = sentBytes;
        return isStill;
      });
      assert(sentBytes < 32 * 1024 * 1024, `${sentBytes} bytes were taken`);
      await body.cancel();
      await until("the connection to be dropped", () => closed);
    } finally {
      await web.close();
    }
  });

  test(`HttpClientPort.open(): the signal ends the wait for the head, and later the body${way}`, async () => {
    const web = await serveWeb(({ url }, response) => {
      if (url === "/body") response.writeHead(200).write("abc");
    });
    try {
      for (const path of ["/head", "/body"]) {
        const control = new AbortController();
        const reason = new MillraceError("timeout", "enough");
        const pending = get(web.base + path, { signal: control.signal });
        pending.catch(() => {});
        if (path === "/body") await pending;
        await until("the request", () => web.asked.some(({ url }) => url === path));
        control.abort(reason);
        const error = await assertRejects(async () => await new Response((await pending).body).text(), MillraceError);
        assertEquals(error, reason);
        assertEquals(await get(web.base + path, { signal: control.signal }).catch((error) => error), reason);
      }
    } finally {
      await web.close();
    }
  });

  test(`HttpClientPort.open() rejects with connection_failed when nobody listens, and for names${way}`, async () => {
    const web = await serveWeb(() => {});
    await web.close();
    for (const address of ["127.0.0.1", "localhost", ""]) {
      const error = await assertRejects(() => get(web.base, { address }), MillraceError);
      assertEquals(error.code, "connection_failed", address);
    }
  });

  test(`HttpClientPort.open() checks certificates against the URL's name, not the address${way}`, async () => {
    const server: Server = createServer({ key: TEST_KEY, cert: TEST_CERTIFICATE }, (_request, response) => {
      response.end("safe");
    });
    const port = await listen(server);
    const trusting = createHttpClient({ ca: TEST_CERTIFICATE });
    try {
      const { body } = await get(`https://media.example:${port}/`, { client: trusting });
      assertEquals(await new Response(body).text(), "safe");
      const refused = [
        () => get(`https://other.example:${port}/`, { client: trusting }),
        () => get(`https://media.example:${port}/`),
        () => get(`https://127.0.0.1:${port}/`, { client: trusting }),
      ];
      for (const open of refused) assertEquals((await assertRejects(open, MillraceError)).code, "connection_failed");
    } finally {
      await stop(server);
    }
  });
}
