/** HTTP and TCP through a proxy, on the platform's own sockets. */
import { createServer } from "node:https";
import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { createHttpClient } from "../../platform/shared/http-client.ts";
import { parseProxy } from "../../src/bytes/proxy-url.ts";
import { MillraceError } from "../../src/errors.ts";
import type { FetchOptions } from "../../src/ports.ts";
import { isProxyFault } from "../../src/egress/handshake.ts";
import { connectProxied } from "../../src/egress/proxied-tcp.ts";
import { ProxyHealth } from "../../src/egress/proxy-health.ts";
import { startProxy, type TestProxyOptions } from "../support/proxy.ts";
import { noise } from "../support/random.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "../support/tls.ts";
import { listen, serveWeb, stop } from "../support/web.ts";
import { LOOPBACK, ports, Recorder, soon } from "./support.ts";

const KINDS: readonly TestProxyOptions[] = [
  { kind: "socks5" },
  { kind: "socks5", credentials: { user: "us@er", password: "pa:ss" } },
  { kind: "http", credentials: { user: "user", password: "pass" } },
];
const BODY = noise(700_000, 3);

const asked = (url: string, proxy: string) => ({
  url: new URL(url),
  address: new URL(url).hostname,
  method: "GET" as const,
  headers: new Headers(),
  proxy: parseProxy(proxy),
  signal: soon(),
});

for (const kind of KINDS) {
  const name = `${kind.kind}${kind.credentials ? " with a password" : ""}`;

  test(`HttpClientPort.open() goes through a proxy by name, ${name}: plain, TLS, chunked, to the end`, async () => {
    const proxy = await startProxy(kind);
    const web = await serveWeb(({ url }, response) => {
      if (url === "/chunked") response.write(BODY.subarray(0, 1000));
      else if (url === "/length") response.setHeader("content-length", BODY.length);
      else {response.shouldKeepAlive = false,
          response.removeHeader("transfer-encoding"),
          response.useChunkedEncodingByDefault = false;}
      response.end(url === "/chunked" ? BODY.subarray(1000) : BODY);
    });
    const secure = createServer(
      { cert: TEST_CERTIFICATE, key: TEST_KEY },
      (_, response) => void response.end("secret"),
    );
    const port = await listen(secure);
    const client = createHttpClient({ ca: TEST_CERTIFICATE });
    try {
      for (const path of ["/chunked", "/length", "/close"]) {
        const { status, body } = await client.open(asked(`http://film.test:${web.port}${path}`, proxy.url));
        assertEquals(status, 200);
        assertEquals(new Uint8Array(await new Response(body).arrayBuffer()), BODY, path);
      }
      const answer = await client.open(asked(`https://media.example:${port}/`, proxy.url));
      assertEquals(await new Response(answer.body).text(), "secret");
      // The certificate is for another name.
      await assertRejects(() => client.open(asked(`https://other.example:${port}/`, proxy.url)), MillraceError);
      assertEquals([...new Set(proxy.asked)], [
        `film.test:${web.port}`,
        `media.example:${port}`,
        `other.example:${port}`,
      ]);
      assertEquals(proxy.faults, []);
    } finally {
      await web.close();
      await stop(secure);
      await proxy.close();
    }
  });

  test(`connectProxied() carries bytes both ways, ${name}`, async () => {
    const proxy = await startProxy(kind);
    const listener = await ports.tcp.listen(LOOPBACK, (connection) => {
      // At once: it may arrive with the end of the handshake.
      connection.write(Uint8Array.of(1, 2, 3));
      connection.open({ data: (chunk) => void connection.write(chunk.slice()), end() {}, drain() {}, close() {} });
    });
    try {
      const target = { host: "peer.test", port: listener.address.port };
      const health = new ProxyHealth(ports.log);
      const parts = { tcp: ports.tcp, clock: ports.clock, proxy: parseProxy(proxy.url), health };
      const connection = await connectProxied(parts, target, soon());
      const recorder = new Recorder();
      connection.open(recorder);
      assertEquals(connection.remote, target);
      await recorder.has(3);
      for (let at = 0; at < BODY.length; at += 50_000) connection.write(BODY.subarray(at, at + 50_000));
      await recorder.has(3 + BODY.length);
      assertEquals(recorder.bytes().subarray(3), BODY);
      connection.abort();
      await recorder.closed.promise;
      assertEquals([proxy.faults, health.trouble], [[], null]);
    } finally {
      await listener.close();
      await proxy.close();
    }
  });
}

test("HttpClientPort.open() and connectProxied() say what the proxy says, and connect to nobody when it is gone", async () => {
  const web = await serveWeb((_, response) => void response.end());
  const refusing = await startProxy({ refusal: [5, 5, 0, 3, 1, 65, 0, 0] });
  const locked = await startProxy({ credentials: { user: "a", password: "b" } });
  const gone = await startProxy();
  await gone.close();
  const health = new ProxyHealth({ log() {}, child: () => ports.log });
  const attempts = (proxy: string) => [
    () => ports.httpClient.open(asked(web.base, proxy)),
    () => ports.fetch(web.base, { redirect: "manual", proxy: parseProxy(proxy) } as FetchOptions),
    () => connectProxied({ ...ports, proxy: parseProxy(proxy), health }, { host: "127.0.0.1", port: web.port }, soon()),
  ];
  const cases = [
    [refusing.url, /the connection was refused/, false],
    [locked.url.replace("a:b@", ""), /wants a user and a password/, true],
    [locked.url.replace("a:b@", "a:c@"), /refuses the user or the password/, true],
    [gone.url, /cannot be reached/, true],
  ] as const;
  try {
    for (const [proxy, message, isFault] of cases) {
      for (const attempt of attempts(proxy)) {
        const error = await assertRejects(attempt, MillraceError);
        assertMatch(error.message, message);
        assertEquals([error.code, isProxyFault(error)], ["connection_failed", isFault]);
      }
    }
    assertMatch(health.trouble!, /cannot be reached/);
    // What the runtime's own fetch would send is not sent at all.
    const other = await assertRejects(() =>
      ports.fetch(web.base, { method: "POST", proxy: parseProxy(gone.url) } as FetchOptions)
    );
    assert(other instanceof MillraceError);
    assertEquals(web.asked.length, 0);
  } finally {
    await web.close();
    await refusing.close();
    await locked.close();
  }
});

test("HttpClientPort.open() and fetch() connect from the address that is asked for", async () => {
  const from: (string | undefined)[] = [];
  const web = await serveWeb(({ socket }, response) => {
    from.push(socket.remoteAddress);
    response.end();
  });
  const way = { localAddress: "127.0.0.7" };
  try {
    const request = {
      url: new URL(web.base),
      address: "127.0.0.1",
      method: "GET" as const,
      headers: new Headers(),
      signal: soon(),
    };
    for (const isLenient of [false, true]) {
      const { body } = await ports.httpClient.open({ ...request, ...way, isLenient });
      await new Response(body).text();
    }
    const options = { ...way, redirect: "manual" } as FetchOptions;
    await (await ports.fetch(`http://localhost:${web.port}/`, options)).text();
    assertEquals(from, ["127.0.0.7", "127.0.0.7", "127.0.0.7"]);
  } finally {
    await web.close();
  }
});
