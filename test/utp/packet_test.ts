import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { decodePacket, distance, encodePacket, looksLikeUtp, PACKET, type UtpPacket } from "../../src/utp/packet.ts";
import { noise, seeded } from "../support/random.ts";

const PLAIN: UtpPacket = {
  type: PACKET.data,
  connectionId: 0x1234,
  timestampUs: 0x01020304,
  timestampDifferenceUs: 0x05060708,
  windowBytes: 0x00080000,
  seq: 0xfffe,
  ack: 0x0102,
  selectiveAck: null,
  payload: Uint8Array.of(1, 2, 3),
};

test("encodePacket() lays out the header as BEP 29 does", () => {
  const hex = [...encodePacket(PLAIN)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  assertEquals(hex, "0100" + "1234" + "01020304" + "05060708" + "00080000" + "fffe" + "0102" + "010203");
});

test("decodePacket() reads what encodePacket() wrote, with and without a selective acknowledgement", () => {
  for (const type of Object.values(PACKET)) {
    for (const selectiveAck of [null, Uint8Array.of(1, 0, 0, 0x80)]) {
      const packet = { ...PLAIN, type, selectiveAck };
      assertEquals(decodePacket(encodePacket(packet)), packet);
    }
  }
});

test("decodePacket() skips extensions that it doesn't know", () => {
  const plain = encodePacket(PLAIN);
  const bytes = Uint8Array.of(...plain.subarray(0, 20), 0, 2, 9, 9, ...PLAIN.payload);
  bytes[1] = 7;
  assertEquals(decodePacket(bytes)?.payload, PLAIN.payload);
});

test("decodePacket() returns null for anything malformed", () => {
  const plain = encodePacket(PLAIN);
  const changed = (at: number, value: number) => Uint8Array.from(plain, (byte, i) => i === at ? value : byte);
  const cases: [string, Uint8Array][] = [
    ["empty", new Uint8Array(0)],
    ["cut short", plain.subarray(0, 19)],
    ["another version", changed(0, 0x02)],
    ["another type", changed(0, 0x51)],
    ["a DHT message", new TextEncoder().encode("d1:ad2:id20:aaaaaaaaaaaaaaaaaaaae1:q4:ping1:t2:aa1:y1:qe")],
    ["an extension beyond the end", changed(1, 1)],
    ["a selective acknowledgement cut short", Uint8Array.of(...changed(1, 1).subarray(0, 20), 0, 3, 1, 2)],
  ];
  for (const [name, bytes] of cases) assertEquals(decodePacket(bytes), null, name);
});

test("decodePacket() reads selective acknowledgements of any length, at most 64 bytes of them", () => {
  const acknowledging = (bytes: Uint8Array) => {
    const plain = encodePacket(PLAIN);
    plain[1] = 1;
    return Uint8Array.of(...plain.subarray(0, 20), 0, bytes.length, ...bytes, ...PLAIN.payload);
  };
  for (const length of [1, 2, 3, 4, 5, 63, 64, 65, 255]) {
    const packet = decodePacket(acknowledging(noise(length)));
    assertEquals(packet?.selectiveAck, noise(length).subarray(0, 64), `${length} bytes`);
    assertEquals(packet?.payload, PLAIN.payload);
  }
  assertEquals(decodePacket(acknowledging(new Uint8Array(0)))?.selectiveAck, null);
});

test("decodePacket() survives noise and damaged packets", () => {
  const random = seeded(5);
  for (let i = 0; i < 20_000; i++) {
    const bytes = i % 2 === 0
      ? noise(Math.floor(random() * 60), i)
      : encodePacket({ ...PLAIN, selectiveAck: new Uint8Array(8) });
    for (let n = 0; n < 3 && bytes.length > 0; n++) {
      bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
    }
    if (i % 4 === 0 && bytes.length > 0) bytes[0] = 0x21;
    const packet = decodePacket(bytes);
    if (packet === null) continue;
    assert(looksLikeUtp(bytes) && packet.payload.length <= bytes.length - 20);
  }
});

test("distance() counts across the wrap of sequence numbers", () => {
  for (const [seq, base, expected] of [[5, 3, 2], [3, 5, -2], [1, 0xffff, 2], [0xffff, 1, -2], [0, 0, 0]] as const) {
    assertEquals(distance(seq, base), expected);
  }
});
