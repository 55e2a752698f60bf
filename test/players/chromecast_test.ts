/** CASTV2 with a simulated device; test/interop has a receiver that we did not write. */
import { test } from "node:test";
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { castFrames, decodeCastMessage, encodeCastMessage } from "../../src/players/chromecast/cast-message.ts";
import { Chromecast } from "../../src/players/chromecast/chromecast.ts";
import { describeChromecast } from "../../src/players/chromecast/chromecast-finder.ts";
import type { ByteConnection } from "../../src/ports.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { silent } from "../support/fault-log.ts";
import { noise } from "../support/random.ts";
import { FakeStream } from "./support.ts";

const { signal } = new AbortController();
const MESSAGE = { source: "sender-0", destination: "receiver-0", namespace: "urn:x", text: '{"é":1}' };
const bytesOf = (...chunks: Uint8Array[]) => ReadableStream.from(chunks) as ReadableStream<Uint8Array>;
const collect = async (stream: ReadableStream<Uint8Array>) => {
  const frames: Uint8Array[] = [];
  for await (const frame of castFrames(stream)) frames.push(frame.slice());
  return frames;
};

test("decodeCastMessage() reads what encodeCastMessage() wrote, skips fields that it does not know, and refuses the rest", () => {
  const framed = encodeCastMessage(MESSAGE);
  assertEquals(new DataView(framed.buffer).getUint32(0), framed.length - 4);
  const body = framed.subarray(4);
  assertEquals(decodeCastMessage(body), MESSAGE);
  const unknown = [0x40, 1, 0x4d, 1, 2, 3, 4, 0x51, 1, 2, 3, 4, 5, 6, 7, 8, 0x5a, 2, 9, 9];
  assertEquals(decodeCastMessage(new Uint8Array([...body, ...unknown])), MESSAGE);
  const binary = new Uint8Array([0x12, 1, 97, 0x1a, 1, 98, 0x22, 1, 99, 0x28, 1, 0x3a, 1, 0]);
  assertEquals(decodeCastMessage(binary), null);
  const refused = [[], [0x12], [0x12, 5, 97], [0x12, 0xff, 0xff, 0xff, 0xff, 0x0f], Array(11).fill(0xff), [0x0b], [
    ...body.subarray(0, body.length - 1),
  ]];
  for (const bytes of refused) {
    const error = assertThrows(() => decodeCastMessage(new Uint8Array(bytes)), MillraceError);
    assertEquals(error.code, "protocol_violation");
  }
  assertThrows(() => encodeCastMessage({ ...MESSAGE, text: "x".repeat(70_000) }), MillraceError, "too long");
});

test("decodeCastMessage() survives 20,000 damaged messages with a typed error or a message", () => {
  const whole = encodeCastMessage(MESSAGE).subarray(4);
  const random = noise(100_000);
  for (let round = 0, r = 0; round < 20_000; round++) {
    const bytes = whole.slice();
    for (let i = 0; i <= round % 2; i++) bytes[random[r++]! % bytes.length] = random[r++]!;
    try {
      decodeCastMessage(bytes);
    } catch (error) {
      assert(error instanceof MillraceError && error.code === "protocol_violation", String(error));
    }
    r %= 99_000;
  }
});

test("castFrames() finds messages however chunks are split, and refuses one that claims to be longer than 64 KiB", async () => {
  const framed = encodeCastMessage(MESSAGE);
  const three = new Uint8Array([...framed, ...framed, ...framed]);
  for (const size of [1, 3, 5, framed.length, framed.length + 2, three.length]) {
    const chunks = Array.from(
      { length: Math.ceil(three.length / size) },
      (_, n) => three.slice(n * size, (n + 1) * size),
    );
    assertEquals(await collect(bytesOf(...chunks)), Array(3).fill(framed.slice(4)), `${size} bytes a chunk`);
  }
  await assertRejects(() => collect(bytesOf(new Uint8Array([0, 1, 0, 1]))), MillraceError);
});

test("describeChromecast() takes nothing from an announcement that is no id, no name or no path", () => {
  const describe = (facts: Record<string, string>) =>
    describeChromecast({ instance: "I", host: "192.168.7.9", port: 8009, facts: new Map(Object.entries(facts)) });
  const at = { host: "192.168.7.9", port: 8009 };
  assertEquals(describe({ id: "abc", fn: "TV", ic: "/setup/icon.png" }), {
    id: "abc",
    name: "TV",
    icon: "http://192.168.7.9:8008/setup/icon.png",
    at,
  });
  assertEquals(describe({ id: "a b", fn: "\u0000\u202e", ic: "@evil.example/" }), {
    id: "192.168.7.9:8009",
    name: "Chromecast",
    icon: null,
    at,
  });
  assertEquals(describe({ fn: "x".repeat(500) }).name.length, 100);
});

type Body = Record<string, unknown>;

/** A device whose answers the test makes; null is silence. `isForApp`: the message is for the application, not the receiver. */
function device(answer: (type: string, isForApp: boolean) => Body | null) {
  const clock = new FakeClock();
  const asked: string[] = [];
  const open: ReadableStreamDefaultController<Uint8Array>[] = [];
  const say = (body: Body, namespace = "urn:x") =>
    open.at(-1)!.enqueue(
      encodeCastMessage({ source: "receiver-0", destination: "sender-0", namespace, text: JSON.stringify(body) }),
    );
  const connectUnverified = (): Promise<ByteConnection> => {
    let controller!: ReadableStreamDefaultController<Uint8Array>;
    const readable = new ReadableStream<Uint8Array>({ start: (given) => void open.push(controller = given) });
    const writable = new WritableStream<Uint8Array>({
      write(chunk) {
        const { text, namespace, destination } = decodeCastMessage(chunk.subarray(4))!;
        const request = JSON.parse(text);
        asked.push(request.type);
        const reply = answer(request.type, destination !== "receiver-0");
        if (reply !== null) say({ ...reply, requestId: request.requestId }, namespace);
      },
    });
    const close = () => {
      try {
        controller.close();
      } catch {
        // The device closed it.
      }
    };
    return Promise.resolve({ readable, writable, close });
  };
  const player = new Chromecast({ deviceTls: { connectUnverified }, clock, log: silent }, {
    id: "1",
    name: "TV",
    icon: null,
    at: { host: "192.168.7.9", port: 8009 },
  });
  /** Streams take turns of the event loop, not of the clock. */
  const pass = async (ms: number) => {
    for (let passed = 0; passed <= ms; passed += 300) {
      for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setTimeout(resolve, 0));
      await clock.advanceAsync(Math.min(300, ms));
    }
  };
  return { clock, asked, player, pass, say, hangUp: () => open.at(-1)!.close() };
}

const receiver = (...applications: Body[]) => ({
  type: "RECEIVER_STATUS",
  status: { applications, volume: { level: 0.256, muted: false } },
});
const APP = { appId: "CC1AD845", sessionId: "s", transportId: "t" };
const media = (playerState: string, more: Body = {}, contentId = new FakeStream("1").url) => ({
  type: "MEDIA_STATUS",
  status: [{ mediaSessionId: 1, playerState, currentTime: 7, media: { contentId, duration: 60 }, ...more }],
});

test("Chromecast.open() waits until its application takes messages and plays, and says why it does not", async () => {
  let applications: Body[] = [];
  let playing: Body = media("BUFFERING");
  let loaded: Body | null = null;
  const { player, asked, pass } = device((type, isForApp) => {
    if (type === "LAUNCH") applications = [{ ...APP, transportId: undefined }];
    if (!isForApp) return receiver(...applications);
    return type === "LOAD" && loaded !== null ? loaded : playing;
  });
  const opening = player.open(new FakeStream("1"), signal);
  await pass(900);
  assert(!asked.includes("LOAD"), "it takes no messages yet");
  applications = [APP];
  await pass(900);
  assert(asked.includes("LOAD"));
  playing = media("PLAYING");
  await pass(600);
  await opening;
  for (const reply of [{ type: "LOAD_FAILED", reason: "SRC" }, media("IDLE", { idleReason: "ERROR" })]) {
    loaded = reply;
    playing = reply.type === "LOAD_FAILED" ? playing : reply;
    asked.length = 0;
    const refused = assertRejects(() => player.open(new FakeStream("1"), signal), MillraceError, "TV does not play it");
    await pass(900);
    assertEquals((await refused).code, "unavailable");
  }
  player.close();
});

test("Chromecast keeps its connection while it is used, reconnects after a loss, and gives up after 15 s of silence", async () => {
  let isSilent = false;
  const { player, asked, pass, say, hangUp, clock } = device((type) => {
    if (isSilent) return null;
    if (type === "PING") return { type: "PONG" };
    return type === "SET_VOLUME" ? receiver() : null;
  });
  const louder = async () => {
    const done = player.setVolume(30, signal);
    await pass(0);
    return await done;
  };
  await louder();
  await louder();
  assertEquals(asked, ["CONNECT", "SET_VOLUME", "SET_VOLUME"]);
  say({ type: "PING" }, "urn:x-cast:com.google.cast.tp.heartbeat");
  say({ type: "nonsense", requestId: 99 });
  await pass(0);
  assertEquals(asked.at(-1), "PONG");
  hangUp();
  await pass(0);
  await louder();
  assertEquals(asked.slice(-2), ["CONNECT", "SET_VOLUME"]);
  await pass(6000);
  assertEquals(asked.at(-1), "PING");
  isSilent = true;
  const lost = assertRejects(() => player.setVolume(40, signal), MillraceError);
  await pass(45_000);
  assertEquals((await lost).code, "connection_failed");
  player.close();
  assertEquals(clock.pendingTimers, 0);
});

test("Chromecast drops the connection to a device that sends more messages than any does", async () => {
  const { player, pass, say, asked, clock } = device(() => receiver());
  const louder = async () => {
    const done = player.setVolume(30, signal);
    await pass(0);
    await done;
  };
  await louder();
  for (let n = 0; n < 1000; n++) say({ type: "PING" }, "urn:x-cast:com.google.cast.tp.heartbeat");
  await pass(3000);
  assert(asked.filter((type) => type === "PONG").length < 200);
  await louder();
  assertEquals(asked.filter((type) => type === "CONNECT").length, 2);
  player.close();
  assertEquals(clock.pendingTimers, 0);
});

test("Chromecast reports the state of its own stream, and nothing about what somebody else plays there", async () => {
  let playing: Body = media("PLAYING");
  const { player, pass } = device((_type, isForApp) => isForApp ? playing : receiver(APP));
  const ask = async <T>(asking: Promise<T>) => {
    await pass(600);
    return await asking;
  };
  const idle = { state: "idle", positionSeconds: null, durationSeconds: null };
  assertEquals(await ask(player.status(signal)), idle as unknown);
  await ask(player.open(new FakeStream("1"), signal));
  assertEquals(await ask(player.status(signal)), {
    state: "playing",
    positionSeconds: 7,
    durationSeconds: 60,
    volumePercent: 26,
  });
  playing = media("PLAYING", {}, "https://example.com/somebody-else.m3u8");
  assertEquals(await ask(player.status(signal)), idle as unknown);
  const error = await ask(assertRejects(() => player.control({ kind: "pause" }, signal), MillraceError));
  assertEquals(error.code, "conflict");
  player.close();
});
