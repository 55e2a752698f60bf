/** Connections to web browsers: WebSocket, and channels of WebRTC. */
import { createServer } from "node:http";
import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import websocket from "websocket-driver";
import { MillraceError } from "../../src/errors.ts";
import { concatBytes } from "../../src/bytes/hex.ts";
import { ChannelConnection } from "../../platform/shared/channel-connection.ts";
import { noise } from "../support/random.ts";
import { until } from "../support/until.ts";
import { listen, stop } from "../support/web.ts";
import { ports, Recorder, soon } from "./support.ts";

const pages = ports.pages!;
const HERE = { usesLoopback: true, allows: () => true };

type Parts = ConstructorParameters<typeof ChannelConnection>;

/** A source of events, as the library has them. */
class Source<T> {
  readonly listeners: ((value: T) => void)[] = [];
  subscribe(listener: (value: T) => void): void {
    this.listeners.push(listener);
  }
  once(listener: (value: T) => void): void {
    this.listeners.push(listener);
  }
  tell(value: T): void {
    for (const listener of [...this.listeners]) listener(value);
  }
}

/** An open channel that keeps what is sent until it is taken. */
function channel() {
  const sent: Uint8Array[] = [];
  const fake = {
    onMessage: new Source<string | Uint8Array>(),
    stateChanged: new Source<string>(),
    bufferedAmountLow: new Source<void>(),
    bufferedAmountLowThreshold: 0,
    bufferedAmount: 0,
    send(message: Uint8Array) {
      sent.push(message.slice());
      fake.bufferedAmount += message.length;
    },
    /** All that was sent has left. */
    leave() {
      fake.bufferedAmount = 0;
      const waiting = fake.bufferedAmountLow.listeners.splice(0);
      for (const listener of waiting) listener();
    },
    close: () => fake.stateChanged.tell("closed"),
  };
  const peer = { connectionStateChange: new Source<string>(), iceTransports: [], isClosed: false, close };
  function close() {
    peer.isClosed = true;
    return Promise.resolve();
  }
  const connection = new ChannelConnection(fake as unknown as Parts[0], peer as unknown as Parts[1]);
  const recorder = new Recorder();
  connection.open(recorder);
  return { fake, peer, sent, connection, recorder };
}

test("ChannelConnection.write() sends messages of 16 KiB, and no more than the library should hold", async () => {
  const { fake, sent, connection, recorder, peer } = channel();
  const data = noise(300_000, 1);
  assertEquals(connection.write(data), false);
  await until("it waits", () => fake.bufferedAmount > 64 * 1024);
  assertEquals([sent.length, sent[0]!.length, connection.bufferedBytes > 200_000], [5, 16_384, true]);
  connection.end();
  await until("all is sent", () => (fake.leave(), connection.bufferedBytes === 0));
  assertEquals(concatBytes(sent), data);
  await recorder.closed.promise;
  assert(peer.isClosed);
});

test("ChannelConnection.pause() keeps what comes, and ends the connection when a peer sends on and on", async () => {
  const { fake, connection, recorder } = channel();
  await until("it reads", () => (fake.onMessage.tell(Uint8Array.of(1)), recorder.received.length > 0));
  const before = recorder.bytes().length;
  connection.pause();
  fake.onMessage.tell(Uint8Array.of(2, 3));
  fake.onMessage.tell("text");
  assertEquals(recorder.bytes().length, before);
  connection.resume();
  assertEquals([...recorder.bytes().subarray(before)], [2, 3]);
  connection.pause();
  for (let i = 0; i < 70; i++) fake.onMessage.tell(new Uint8Array(65_536));
  await recorder.closed.promise;
  assertEquals(recorder.bytes().length, before + 2);
});

test("PagePort.answer() refuses anything but a description, and an attempt that is closed never opens", async () => {
  await assertRejects(() => pages.answer("v=0\r\nm=nothing\r\n", HERE), MillraceError);
  const offer = await pages.offer({ usesLoopback: false, allows: () => true });
  assert(!offer.sdp.includes("127.0.0.1 "), offer.sdp);
  offer.close();
  await assertRejects(() => offer.opened, MillraceError);
});

test("PagePort.openWebSocket() talks to the address that is asked for, and ends at long messages and when the server leaves", async () => {
  const server = createServer();
  let leave = () => {};
  const heard: string[] = [];
  const sockets: { destroy(): void }[] = [];
  server.on("upgrade", (request, socket, head) => {
    const driver = websocket.http(request);
    driver.io.write(head);
    socket.pipe(driver.io).pipe(socket);
    sockets.push(socket);
    socket.on("error", () => {});
    driver.on("message", ({ data }: { data: unknown }) => {
      heard.push(`${request.headers.host} ${data}`);
      driver.text(data === "long" ? "x".repeat(2000) : `heard ${data}`);
    });
    leave = () => driver.close();
    driver.start();
  });
  const port = await listen(server);
  const open = async (url = `ws://tracker.invalid:${port}/`, addresses = ["127.0.0.1"]) => {
    const messages: string[] = [];
    let isClosed = false;
    const socket = await pages.openWebSocket({
      ...{ url: new URL(url), addresses, maxMessageBytes: 1000, signal: soon() },
      onMessage: (text) => void messages.push(text),
      onClose: () => isClosed = true,
    });
    return { socket, messages, isClosed: () => isClosed };
  };
  try {
    const first = await open(undefined, ["127.0.0.2", "127.0.0.1"]);
    assertEquals(first.socket.address, "127.0.0.1");
    first.socket.send("hello");
    await until("the answer is here", () => first.messages.length > 0);
    assertEquals([first.messages, heard], [["heard hello"], [`tracker.invalid:${port} hello`]]);
    first.socket.send("long");
    await until("it is closed", first.isClosed);
    assertEquals(first.messages.length, 1);
    const second = await open();
    leave();
    await until("it is closed", second.isClosed);
    const third = await open();
    third.socket.close();
    assert(third.isClosed());
    await assertRejects(() => open(undefined, ["127.0.0.2"]), MillraceError);
  } finally {
    // The server no longer counts them.
    for (const socket of sockets) socket.destroy();
    await stop(server);
  }
  await assertRejects(() => open(), MillraceError);
});
