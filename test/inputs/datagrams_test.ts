import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import type { UdpSocket } from "../../src/ports.ts";
import { openSource } from "../../src/inputs/open-source.ts";
import { until } from "../support/until.ts";
import { CLIP, dataOf, hear, losses, OPTIONS, sourcePorts } from "./support.ts";

const DATAGRAM = 7 * 188;
const PARTS = Array.from(
  { length: Math.floor(CLIP.length / DATAGRAM) },
  (_, i) => CLIP.slice(i * DATAGRAM, (i + 1) * DATAGRAM),
);
const ALL = CLIP.subarray(0, PARTS.length * DATAGRAM);

type TestPorts = Awaited<ReturnType<typeof sourcePorts>>;

/** Sends `datagrams` a few at a time; kernels buffer about 150 for a slow receiver. */
async function send(
  ports: TestPorts,
  to: { host: string; port: number },
  datagrams: readonly Uint8Array[],
  group = false,
) {
  const socket = await ports.udp.bind(
    group ? { multicastGroup: to.host, multicastInterface: "127.0.0.1" } : { host: "127.0.0.1" },
  );
  for (const [i, datagram] of datagrams.entries()) {
    await socket.send(datagram, to);
    if (i % 16 === 15) await new Promise((resolve) => setTimeout(resolve, 2));
  }
  socket.close();
}

/** An RTP packet around `payload`. */
function rtp(payload: Uint8Array, sequence: number, ssrc = 1): Uint8Array {
  const packet = new Uint8Array(12 + payload.length);
  packet.set([0x80, 33, sequence >> 8 & 255, sequence & 255, 0, 0, 0, 0, 0, 0, 0, ssrc]);
  packet.set(payload, 12);
  return packet;
}

type Address = { host: string; port: number };

/**
 * Listens as `source` says, but on a free port whatever port that has; `sender` is told where once the socket is there.
 * Hears until `enough`.
 */
async function listen(
  ports: TestPorts,
  source: string,
  sender: (to: Address) => Promise<void>,
  enough: Parameters<typeof hear>[1],
) {
  let isBound: (to: Address) => void = () => {};
  let asked: number | undefined = 0;
  const bound = new Promise<Address>((resolve) => isBound = resolve);
  const udp = {
    async bind(options: Parameters<TestPorts["udp"]["bind"]>[0]) {
      asked = options.receiveBufferBytes;
      const socket = await ports.udp.bind({ ...options, port: 0 });
      const onMessage = (handler: Parameters<typeof socket.onMessage>[0]) => {
        socket.onMessage(handler);
        isBound({ host: [options.multicastGroup ?? "127.0.0.1"].flat()[0]!, port: socket.address.port });
      };
      return { ...socket, onMessage };
    },
  };
  const { input } = await openSource({ ...ports, udp }, source, OPTIONS);
  const heard = hear(input, enough);
  await sender(await bound);
  // The buffer that the kernel grants depends on the machine.
  assertEquals(asked, 4 * 1024 * 1024);
  return await heard;
}

test("a udp:// source receives datagrams, and releases its port", async () => {
  const ports = await sourcePorts();
  let bound: Address | null = null;
  const junk = new TextEncoder().encode("no transport stream");
  const heard = await listen(
    ports,
    `udp://127.0.0.1:1234`,
    (to) => {
      bound = to;
      return send(ports, to, [junk, ...PARTS]);
    },
    (_, bytes) => bytes >= ALL.length,
  );
  assertEquals(losses(heard), []);
  assertEquals(dataOf(heard), ALL);
  assertEquals(ports.lines.map(({ fields }) => fields["strangeDatagrams"]), [1]);
  let again: UdpSocket | null = null;
  await until("the port to be free", async () => (again = await ports.udp.bind(bound!).catch(() => null)) !== null);
  again!.close();
});

test("udp:// and rtp:// sources join a stream that its sender cut every 1472 bytes", async () => {
  const parts = Array.from({ length: Math.ceil(CLIP.length / 1472) }, (_, i) => CLIP.slice(i * 1472, (i + 1) * 1472));
  for (const kind of ["udp", "rtp"]) {
    const ports = await sourcePorts();
    const sent = kind === "udp" ? parts : parts.map((part, i) => rtp(part, i));
    const heard = await listen(
      ports,
      `${kind}://127.0.0.1:1234`,
      (to) => send(ports, to, sent),
      (_, bytes) => bytes >= CLIP.length,
    );
    assertEquals(losses(heard), []);
    assertEquals(dataOf(heard), CLIP);
    assertEquals(ports.lines, []);
  }
});

test("a udp:// source counts and reports transport packets that are missing, and the stream continues", async () => {
  const ports = await sourcePorts();
  const heard = await listen(
    ports,
    `udp://127.0.0.1:1234`,
    (to) => send(ports, to, [...PARTS.slice(0, 20), ...PARTS.slice(21)]),
    (_, bytes) => bytes >= ALL.length - DATAGRAM,
  );
  assertEquals(losses(heard), []);
  const counted = ports.lines.map(({ fields }) => fields["lostPackets"]);
  assertEquals(counted.length, 1);
  assert(Number(counted[0]) > 0 && Number(counted[0]) <= 7, `${counted[0]} packets`);
});

test("a udp:// source hears a multicast group, and no other group on that port", async () => {
  const ports = await sourcePorts();
  const heard = await listen(ports, `udp://@239.192.77.1:1234?localaddr=127.0.0.1`, async (to) => {
    await send(
      ports,
      { host: "239.192.77.2", port: to.port },
      PARTS.slice(0, 5).map((part) => part.toReversed()),
      true,
    );
    await send(ports, to, PARTS, true);
  }, (_, bytes) => bytes >= ALL.length);
  assertEquals(dataOf(heard), ALL);
});

test("a udp:// source that falls silent is lost, and continues when it is back", async () => {
  const ports = await sourcePorts(20);
  let step = 0;
  const heard = await listen(ports, `udp://127.0.0.1:1234`, async (to) => {
    await send(ports, to, PARTS.slice(0, 20));
    await until("the source to be lost", () => step === 1);
    await send(ports, to, PARTS.slice(20, 40));
  }, (soFar, bytes) => {
    step = losses(soFar).length;
    return bytes === 40 * DATAGRAM;
  });
  assertEquals(heard.map((one) => "lost" in one ? "lost" : one.data.length), [20 * DATAGRAM, "lost", 20 * DATAGRAM]);
  assertMatch(losses(heard)[0]!, /no datagram came to udp:\/\/127\.0\.0\.1:\d+ for 5 s/);
});

test("a rtp:// source strips headers, reorders across the wrap, and reports losses without a discontinuity", async () => {
  const ports = await sourcePorts();
  const packets = PARTS.map((part, i) => rtp(part, 65530 + i));
  // Swapped at the wrap; one missing; one twice.
  [packets[5], packets[7]] = [packets[7]!, packets[5]!];
  const missing = packets.splice(20, 1);
  packets.splice(30, 0, packets[29]!);
  const heard = await listen(
    ports,
    `rtp://127.0.0.1:1234`,
    (to) => send(ports, to, packets),
    (_, bytes) => bytes >= ALL.length - DATAGRAM,
  );
  assertEquals(missing.length, 1);
  assertEquals(losses(heard), []);
  const data = dataOf(heard);
  assertEquals(data.subarray(0, 20 * DATAGRAM), ALL.subarray(0, 20 * DATAGRAM));
  assertEquals(data.subarray(20 * DATAGRAM), ALL.subarray(21 * DATAGRAM));
  assertEquals(ports.lines.map(({ fields }) => fields["lostPackets"]), [1]);
});

test("a rtp:// source cuts over to a sender that began again", async () => {
  const ports = await sourcePorts();
  const packets = [
    ...PARTS.slice(0, 20).map((part, i) => rtp(part, i)),
    ...PARTS.map((part, i) => rtp(part, 9000 + i, 2)),
  ];
  const count = 20 + PARTS.length - 15;
  const heard = await listen(
    ports,
    `rtp://127.0.0.1:1234`,
    (to) => send(ports, to, packets),
    (_, bytes) => bytes >= count * DATAGRAM,
  );
  assertEquals(heard.map((one) => "lost" in one ? one.lost : one.data.length), [
    20 * DATAGRAM,
    "the RTP sender began again",
    (PARTS.length - 15) * DATAGRAM,
  ]);
});

test("a udp:// source on a port that is taken fails at once with a clear error", async () => {
  const ports = await sourcePorts();
  const socket = await ports.udp.bind({ host: "127.0.0.1" });
  const { input } = await openSource(ports, `udp://127.0.0.1:${socket.address.port}`, OPTIONS);
  const error = await assertRejects(() => hear(input), MillraceError);
  assertEquals(error.code, "conflict");
  assert(error.message.includes(String(socket.address.port)));
  socket.close();
});
