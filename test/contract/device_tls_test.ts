import net from "node:net";
import tls from "node:tls";
import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import type { SocketAddress } from "../../src/ports.ts";
import { noise } from "../support/random.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "../support/tls.ts";
import { ports, soon } from "./support.ts";

/** Runs `body` with the address of a server that handles sockets so. */
async function withServer(server: net.Server, body: (at: SocketAddress) => Promise<void>): Promise<void> {
  const sockets = new Set<net.Socket>();
  server.on("connection", (socket: net.Socket) => void sockets.add(socket.on("error", () => {})));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await body({ host: "127.0.0.1", port: (server.address() as net.AddressInfo).port });
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
}
const echo = () =>
  tls.createServer({ key: TEST_KEY, cert: TEST_CERTIFICATE }, (socket) => {
    socket.on("error", () => {});
    socket.pipe(socket);
  });

test("DeviceTlsPort.connectUnverified() carries bytes both ways with any certificate, and closes", async () => {
  await withServer(echo(), async (at) => {
    const connection = await ports.deviceTls.connectUnverified(at, { signal: soon() });
    const sent = noise(300_000);
    const writer = connection.writable.getWriter();
    const writing = writer.write(sent);
    const received = new Uint8Array(sent.length);
    let count = 0;
    for (const reader = connection.readable.getReader(); count < sent.length;) {
      const { value, done } = await reader.read();
      if (done) break;
      received.set(value, count);
      count += value.length;
      if (count === sent.length) reader.releaseLock();
    }
    await writing;
    assertEquals([count, received], [sent.length, sent]);
    connection.close();
    connection.close();
    const { done } = await connection.readable.getReader().read();
    assertEquals(done, true);
  });
});

test("DeviceTlsPort.connectUnverified() rejects when nobody listens, for servers without TLS, for names, and when the signal fires", async () => {
  const refused = async (at: SocketAddress, signal = soon()) =>
    (await assertRejects(() => ports.deviceTls.connectUnverified(at, { signal }), MillraceError)).code;
  await withServer(net.createServer((socket) => void socket.end("no TLS here, sorry")), async (at) => {
    assertEquals(await refused(at), "connection_failed");
    assertEquals(await refused({ ...at, host: "localhost" }), "connection_failed");
  });
  await withServer(net.createServer(), async (at) => {
    const stop = new AbortController();
    const silent = refused(at, stop.signal);
    stop.abort(new MillraceError("timeout", "too late"));
    assertEquals(await silent, "timeout");
    assertEquals(await refused(at, stop.signal), "timeout");
  });
  assertEquals(await refused({ host: "127.0.0.1", port: 9 }), "connection_failed");
});
