import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import {
  decodePcpMap,
  decodePmpAddress,
  decodePmpMap,
  encodePcpMap,
  encodePmpAddress,
  encodePmpMap,
  MAX_PCP_BYTES,
} from "../../src/portmap/pcp-messages.ts";
import type { PortToMap } from "../../src/portmap/gateway.ts";
import { seededRandom } from "../simulation/event-queue.ts";

const bytes = (hex: string) =>
  Uint8Array.from(hex.replaceAll(" ", "").match(/../g) ?? [], (pair) => parseInt(pair, 16));
const TCP: PortToMap = { protocol: "tcp", port: 8621 };
const UDP: PortToMap = { protocol: "udp", port: 8621 };
const NONCE = bytes("0102030405060708090a0b0c");
const ANY = "00000000000000000000ffff00000000";

/** An answer to MAP (RFC 6887 sections 7.2 and 11.1): port 40000 of 203.0.113.7 for an hour. */
const GRANTED = "02 81 00 00 00000e10 00000001 000000000000000000000000" +
  "0102030405060708090a0b0c 06 000000 21ad 9c40 00000000000000000000ffffcb007107";

test("encodePcpMap() lays out a MAP request as RFC 6887 says, and the end of a mapping", () => {
  const facts = { client: "192.168.1.5", nonce: NONCE, externalPort: 8621, lifetimeS: 7200 };
  assertEquals(
    encodePcpMap(TCP, facts),
    bytes(`02 01 0000 00001c20 00000000000000000000ffffc0a80105 0102030405060708090a0b0c 06 000000 21ad 21ad ${ANY}`),
  );
  assertEquals(
    encodePcpMap(UDP, { ...facts, externalPort: 40_000, lifetimeS: 0 }),
    bytes(`02 01 0000 00000000 00000000000000000000ffffc0a80105 0102030405060708090a0b0c 11 000000 21ad 9c40 ${ANY}`),
  );
});

test("decodePcpMap() reads a router's mapping", () => {
  assertEquals(decodePcpMap(bytes(GRANTED), TCP, NONCE), {
    refusal: null,
    isOtherVersion: false,
    lifetimeS: 3600,
    externalPort: 40_000,
    externalHost: "203.0.113.7",
  });
  const without = decodePcpMap(bytes(GRANTED.replace("cb007107", "00000000")), TCP, NONCE);
  assertEquals(without!.externalHost, null);
});

test("decodePcpMap() takes only answers to its own request", () => {
  const table: [string, string][] = [
    ["another nonce", GRANTED.replace("0102030405", "0102030406")],
    ["another protocol", GRANTED.replace("0c 06", "0c 11")],
    ["another port", GRANTED.replace("21ad", "21ae")],
    ["a request", GRANTED.replace("02 81", "02 01")],
    ["another opcode", GRANTED.replace("02 81", "02 82")],
    ["cut off", GRANTED.slice(0, -2)],
    ["only a header", "02 81 00 00 00000e10 00000001 000000000000000000000000"],
    ["nothing", ""],
    ["too long", `${GRANTED}${"00".repeat(MAX_PCP_BYTES)}`],
  ];
  for (const [name, hex] of table) assertEquals(decodePcpMap(bytes(hex), TCP, NONCE), null, name);
});

test("decodePcpMap() says in words why a router refuses, and whether it speaks another version", () => {
  const table: [string, string | RegExp, boolean][] = [
    ["02 81 00 02", /does not allow/, false],
    ["02 81 00 08", /no resources/, false],
    ["02 81 00 0c", /another router/, false],
    ["02 81 00 ee", /it refuses \(238\)/, false],
    ["02 81 00 01", /another version/, true],
    ["00 80 0001 00000000", /another version/, true],
  ];
  for (const [start, words, isOther] of table) {
    const hex = start.startsWith("00") ? start : GRANTED.replace("02 81 00 00", start);
    const answer = decodePcpMap(bytes(hex), TCP, NONCE)!;
    assert(new RegExp(words).test(answer.refusal!), answer.refusal!);
    assertEquals([answer.isOtherVersion, answer.externalPort], [isOther, 0]);
  }
});

test("NAT-PMP requests and answers are as in RFC 6886", () => {
  assertEquals(encodePmpAddress(), bytes("0000"));
  assertEquals(decodePmpAddress(bytes("0080 0000 00000001 cb007107")), { refusal: null, host: "203.0.113.7" });
  assertEquals(decodePmpAddress(bytes("0080 0003 00000001 00000000"))!.refusal, "its own connection is down");
  assertEquals(encodePmpMap(TCP, 8621, 7200), bytes("0002 0000 21ad 21ad 00001c20"));
  assertEquals(encodePmpMap(UDP, 0, 0), bytes("0001 0000 21ad 0000 00000000"));
  assertEquals(decodePmpMap(bytes("0082 0000 00000001 21ad 9c40 00000e10"), TCP), {
    refusal: null,
    isOtherVersion: false,
    lifetimeS: 3600,
    externalPort: 40_000,
    externalHost: null,
  });
  assertEquals(decodePmpMap(bytes("0082 0002 00000001 21ad 0000 00000000"), TCP)!.refusal, "it does not allow that");
  for (
    const hex of [
      "0082 0000 00000001 21ae 9c40 00000e10",
      "0081 0000 00000001 21ad 9c40 00000e10",
      "0082 0000 00000001 21ad 9c40 0000",
      "0282 0000 00000001 21ad 9c40 00000e10",
      "0082",
      "",
    ]
  ) assertEquals(decodePmpMap(bytes(hex), TCP), null, hex);
  assertEquals(decodePmpAddress(bytes("0080 0000 00000001")), null);
});

test("decoders survive router answers of any bytes", () => {
  const random = seededRandom(5);
  const start = bytes(GRANTED);
  for (let i = 0; i < 20_000; i++) {
    const data = random() < 0.5 ? start.slice(0, Math.floor(random() * 70)) : new Uint8Array(Math.floor(random() * 80));
    for (let n = 0; n < 6 && data.length > 0; n++) {
      data[Math.floor(random() * data.length)] = Math.floor(random() * 256);
    }
    for (const answer of [decodePcpMap(data, TCP, NONCE), decodePmpMap(data, UDP)]) {
      if (answer !== null) assert(answer.externalPort >= 0 && answer.externalPort < 65536 && answer.lifetimeS >= 0);
    }
    decodePmpAddress(data);
  }
});
