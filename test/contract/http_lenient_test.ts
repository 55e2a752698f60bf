import { createServer, type Server } from "node:net";
import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { seededBelow } from "../support/random.ts";
import { ports, soon } from "./support.ts";

const BODY = "d5:peers0:e";
const size = BODY.length;
const chunk = `${size.toString(16)}\r\n${BODY}\r\n`;

/** Serves these bytes once per connection, in parts of `partBytes`, and closes. */
async function withRaw(text: string, body: (base: string) => Promise<void>, partBytes = Infinity): Promise<void> {
  const server: Server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      for (let at = 0; at < text.length; at += partBytes) socket.write(text.slice(at, at + partBytes), "latin1");
      socket.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await body(`http://127.0.0.1:${(server.address() as { port: number }).port}/announce`);
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

async function get(url: string) {
  const { status, body } = await ports.httpClient.open({
    url: new URL(url),
    address: "127.0.0.1",
    method: "GET",
    headers: new Headers(),
    isLenient: true,
    signal: soon(),
  });
  return { status, text: await new Response(body).text() };
}

const responses: readonly [name: string, text: string][] = [
  ["lines that end in LF alone", `HTTP/1.0 200 OK\nContent-Type: text/plain\n\n${BODY}`],
  ["a length larger than the body", `HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n${BODY}`],
  ["a length that is no number", `HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n${BODY}`],
  ["two lengths", `HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\nContent-Length: 3\r\n\r\n${BODY}`],
  [
    "a length beside chunks",
    `HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}0\r\n\r\n`,
  ],
  ["chunks without an end", `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`],
  [
    "blanks in the name of a field",
    `HTTP/1.1 200 OK\r\nX Bad Header: y\r\nX : z\r\nContent-Length: ${size}\r\n\r\n${BODY}`,
  ],
  ["a line that is no field", `HTTP/1.1 200 OK\r\nWarning!\r\n: x\r\nContent-Length: ${size}\r\n\r\n${BODY}`],
  ["a line of blanks", `HTTP/1.1 200 OK\r\n   \r\nContent-Length: ${size}\r\n\r\n${BODY}`],
  ["no reason in the status line", `HTTP/1.1 200\r\nContent-Length: ${size}\r\n\r\n${BODY}`],
  [
    "an interim response before",
    `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n${BODY}`,
  ],
  ["more after the body", `HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n${BODY}\r\n<!-- -->`],
];
for (const [name, text] of responses) {
  test(`HttpClientPort.open() reads a response with ${name} when it is lenient`, async () => {
    for (const partBytes of text.length > 1000 ? [Infinity] : [Infinity, 7]) {
      await withRaw(text, async (base) => {
        const answer = await get(base);
        assertEquals([answer.status, answer.text], [200, BODY]);
      }, partBytes);
    }
  });
}

const refused: readonly [name: string, text: string][] = [
  ["nothing", ""],
  ["no status line", `${BODY}\n`],
  ["a head without an end", `HTTP/1.1 200 OK\r\n${"X-A: b\r\n".repeat(40_000)}`],
];
for (const [name, text] of refused) {
  test(`HttpClientPort.open() rejects with connection_failed when a lenient request gets ${name}`, async () => {
    await withRaw(text, async (base) => {
      assertEquals((await assertRejects(() => get(base), MillraceError)).code, "connection_failed");
    });
  });
}

test("HttpClientPort.open() ends with every response that it reads leniently, whatever its bytes", async () => {
  const random = seededBelow(5);
  const parts = ["HTTP/1.1 ", "200", " OK", "\r\n", "\n", "\r", ": ", "Content-Length", "Transfer-Encoding", "chunked"];
  parts.push(
    "5",
    "0",
    "ffffffffffffffff",
    "NaN",
    "Upgrade",
    "Connection",
    "x",
    " ",
    "\0",
    "100",
    "HTTP/1.1 200 OK\r\n",
  );
  for (let i = 0; i < 150; i++) {
    const start = i % 2 === 0 ? "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" : "HTTP/1.1 200 OK\r\n";
    const text = start + Array.from({ length: random(30) }, () => parts[random(parts.length)]).join("");
    await withRaw(text, async (base) => {
      await get(base).catch((error) =>
        assertEquals(error instanceof MillraceError && error.code, "connection_failed", text)
      );
    }, 1 + random(60));
  }
});
