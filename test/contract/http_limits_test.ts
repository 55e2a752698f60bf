/** Limits on what clients can make an HTTP server hold: unfinished requests, long heads, connections. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import net from "node:net";
import { HttpConnections } from "../../platform/shared/http-connections.ts";
import { createHttpPort, HTTP_LIMITS } from "../../platform/shared/http-server.ts";
import { watchListener } from "../../platform/shared/listener-watch.ts";
import type { HttpServer } from "../../src/ports.ts";
import { until } from "../support/until.ts";
import { deferred, LOOPBACK, soon } from "./support.ts";

type Handler = (request: Request) => Response | Promise<Response>;

const SHORT = {
  ...HTTP_LIMITS,
  headersTimeoutMs: 400,
  requestTimeoutMs: 800,
  keepAliveTimeoutMs: 300,
  deadlineCheckMs: 100,
};
const MAX_CONNECTIONS = 6;

async function withServer(
  handler: Handler,
  body: (port: number, server: HttpServer) => Promise<void>,
  limits = HTTP_LIMITS,
  watch?: typeof watchListener,
): Promise<void> {
  const http = createHttpPort({
    ...(watch && { watch }),
    limits,
    connections: () => new HttpConnections(MAX_CONNECTIONS),
  });
  const server = await http.serve(LOOPBACK, handler);
  try {
    await body(server.address.port, server);
  } finally {
    await server.close(0);
  }
}

/** A raw client. */
class Client {
  received = "";
  isClosed = false;
  readonly socket: net.Socket;
  readonly closed: Promise<void>;

  private constructor(socket: net.Socket) {
    this.socket = socket;
    socket.on("data", (chunk) => this.received += chunk);
    socket.on("error", () => {});
    const closed = deferred("the server to close the connection");
    this.closed = closed.promise;
    socket.once("close", () => {
      this.isClosed = true;
      closed.resolve();
    });
  }

  static open(port: number, text: string): Promise<Client> {
    return new Promise((resolve, reject) => {
      const socket = net.connect(port, "127.0.0.1", () => {
        socket.off("error", reject);
        const client = new Client(socket);
        socket.write(text);
        resolve(client);
      });
      socket.once("error", reject);
    });
  }

  has(text: string): Promise<void> {
    return until(`the answer ${text}`, () => this.received.includes(text));
  }
}

const get = async (port: number): Promise<string> => {
  const response = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" }, signal: soon() });
  return await response.text();
};

test("HttpPort.serve() drops clients that do not finish their request in time, even if they keep sending slowly", () =>
  withServer(async (request) => new Response(await request.text()), async (port) => {
    const head = "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ";
    const post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc";
    const clients = await Promise.all(
      [head, post].flatMap((text) => [text, text]).map((text) => Client.open(port, text)),
    );
    const drip = setInterval(() => {
      for (const client of [clients[1]!, clients[3]!]) if (!client.isClosed) client.socket.write("a");
    }, 50);
    try {
      await Promise.all(clients.map((client) => client.closed));
    } finally {
      clearInterval(drip);
    }
    for (const { received } of clients) assertMatch(received, /^(HTTP\/1\.1 408 .*)?/);
    assertEquals(await get(port), "");
  }, SHORT));

test("HttpPort.serve() closes a kept connection that asks for nothing more", () =>
  withServer(() => new Response("fine"), async (port) => {
    const client = await Client.open(port, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await client.has("fine");
    await client.closed;
  }, SHORT));

test("HttpPort.serve() lets a response take longer than a request may", () =>
  withServer(() => {
    const body = new ReadableStream<Uint8Array>({
      async start(controller) {
        controller.enqueue(new TextEncoder().encode("begun "));
        await new Promise((resolve) => setTimeout(resolve, 1.5 * SHORT.requestTimeoutMs));
        controller.enqueue(new TextEncoder().encode("done"));
        controller.close();
      },
    });
    return new Response(body);
  }, async (port) =>
    assertEquals(await get(port), "begun done"), SHORT));

test("HttpPort.serve() refuses a head that is too long, and accepts one just below the limit", () =>
  withServer(() => new Response("fine"), async (port) => {
    const ask = (chars: number) =>
      Client.open(port, `GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Long: ${"a".repeat(chars)}\r\n\r\n`);
    const good = await ask(HTTP_LIMITS.maxHeaderBytes - 1000);
    await good.has("fine");
    const bad = await ask(HTTP_LIMITS.maxHeaderBytes + 1000);
    await bad.closed;
    assert(!bad.received.includes("fine"), bad.received);
  }));

test("HttpPort.serve() drops the connection that was idle for longest when a new one needs its place", () =>
  withServer(() => new Response("fine"), async (port) => {
    const idle: Client[] = [];
    for (let i = 0; i < MAX_CONNECTIONS; i++) {
      const client = await Client.open(port, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
      await client.has("fine");
      idle.push(client);
    }
    for (let i = 0; i < 3; i++) assertEquals(await get(port), "fine");
    await idle[0]!.closed;
    assertEquals(idle.at(-1)!.isClosed, false);
    for (const client of idle) client.socket.destroy();
  }));

test("HttpPort.serve() turns new connections away while all have requests under way, and takes them again", async () => {
  const release = deferred("the end of the test");
  let arrived = 0;
  await withServer(async () => {
    arrived++;
    await release.promise;
    return new Response("fine");
  }, async (port) => {
    const request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    const busy = await Promise.all(Array.from({ length: MAX_CONNECTIONS }, () => Client.open(port, request)));
    await until("all requests", () => arrived === MAX_CONNECTIONS);
    const refused = await Client.open(port, request);
    await refused.closed;
    assertEquals([refused.received, arrived], ["", MAX_CONNECTIONS]);
    release.resolve();
    for (const client of busy) await client.has("fine");
    assertEquals(await get(port), "fine");
  });
});

test("HttpPort.serve() ends a connection that sends requests without waiting for answers", async () => {
  const release = deferred("the end of the test");
  let arrived = 0;
  await withServer(async () => {
    arrived++;
    await release.promise;
    return new Response("fine");
  }, async (port) => {
    const client = await Client.open(port, "GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(500));
    await client.closed;
    assert(arrived <= 16, `${arrived} requests of one connection were under way`);
    release.resolve();
    assertEquals(await get(port), "fine");
  });
});

test("HttpPort.serve() keeps running responses and its deadlines when the listener is opened again", async () => {
  const release = deferred("the end of the test");
  let reopen = () => {};
  const watch: typeof watchListener = (_at, _accepted, again) => {
    reopen = again;
    return () => {};
  };
  await withServer(
    async (request) => {
      if (request.url.endsWith("/long")) await release.promise;
      return new Response("fine");
    },
    async (port) => {
      const running = await Client.open(port, "GET /long HTTP/1.1\r\nHost: x\r\n\r\n");
      const idle = await Client.open(port, "GET /");
      assertEquals(await get(port), "fine");
      reopen();
      await idle.closed;
      await until("the new listener", () => get(port).then((text) => text === "fine", () => false));
      const slow = await Client.open(port, "GET /");
      await slow.closed;
      release.resolve();
      await running.has("fine");
    },
    SHORT,
    watch,
  );
});

test("watchListener() reports a listener that is not served, but not one that is", async () => {
  let accepted = 0;
  let dead = 0;
  const server = net.createServer((socket) => {
    accepted++;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  const end = watchListener({ host: "127.0.0.1", port }, () => accepted, () => dead++);
  try {
    await until("a try", () => accepted > 0);
    assertEquals(dead, 0);
    await new Promise((resolve) => server.close(resolve));
    await until("the report", () => dead > 0);
  } finally {
    end();
  }
});

test("watchListener() takes no listener for one that is not served when the process was held up", async () => {
  let accepted = 0;
  let dead = 0;
  let tries = 0;
  const server = net.createServer((socket) => {
    accepted++;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  const counted = () => {
    // The second time is that of the first check, which connects now. Nothing is accepted until this is over.
    if (++tries === 2) queueMicrotask(() => holdUp(1200));
    return accepted;
  };
  const end = watchListener({ host: "127.0.0.1", port }, counted, () => dead++);
  try {
    await until("a try", () => accepted > 0);
    assertEquals(dead, 0);
  } finally {
    end();
    await new Promise((resolve) => server.close(resolve));
  }
});

/** Keeps this thread busy for `ms`. */
function holdUp(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}
