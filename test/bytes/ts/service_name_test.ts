import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { crc32Mpeg } from "../../../src/bytes/ts/crc.ts";
import { serviceName } from "../../../src/bytes/ts/service-name.ts";
import { seededBelow } from "../../support/random.ts";
import { latin1, serviceStream, serviceTable } from "../../support/services.ts";

test("serviceName() reads the programme's name in the encodings of EN 300 468, annex A", () => {
  const names: [number[], string | null][] = [
    [latin1("Das Erste"), "Das Erste"],
    [[0x15, ...new TextEncoder().encode("Канал Ü")], "Канал Ü"],
    [[...new TextEncoder().encode("Kanal Ü")], "Kanal Ü"],
    [latin1("T\xe9l\xe9"), "Télé"],
    [[0x01, 0xba, 0xd0, 0xdd, 0xd0, 0xdb], "Канал"],
    [[0x10, 0x00, 0x02, 0xb1], "ą"],
    [[0x11, 0x04, 0x1a], "К"],
    [[0x86, ...latin1("HD"), 0x87], "†HD‡"],
    [[0x0b, 0x86, ...latin1("HD"), 0x87], "HD"],
    [latin1("Service01"), null],
    [[], null],
  ];
  for (const [name, expected] of names) {
    assertEquals(serviceName(serviceStream(serviceTable([name]))), expected, JSON.stringify(expected));
  }
});

test("serviceName() finds the table in any layout of packets, and a table of several packets", () => {
  const section = serviceTable([latin1("One")]);
  for (const [stride, before] of [[188, 0], [188, 100], [192, 4], [204, 0]] as const) {
    assertEquals(serviceName(serviceStream(section, stride, before)), "One", `${stride} ${before}`);
  }
  const long = latin1("x".repeat(230));
  assertEquals(serviceName(serviceStream(serviceTable([long]))), "x".repeat(230));
});

test("serviceName() returns null for several programmes, other streams' tables, damage and other data", () => {
  const one = serviceTable([latin1("One")]);
  assertEquals(serviceName(serviceStream(serviceTable([latin1("One"), latin1("Two")]))), null);
  assertEquals(serviceName(serviceStream(serviceTable([latin1("One")], 0x46))), null);
  assertEquals(serviceName(serviceStream([...one.slice(0, 20), 7, ...one.slice(21)])), null);
  assertEquals(serviceName(serviceStream(one).subarray(0, 500)), null);
  assertEquals(serviceName(new Uint8Array(5000)), null);
  assertEquals(serviceName(new Uint8Array()), null);
});

test("serviceName() survives damaged tables", () => {
  const below = seededBelow(5);
  const section = serviceTable([latin1("One"), latin1("Two")]);
  for (let round = 0; round < 3000; round++) {
    const body = section.slice(0, -4);
    for (let i = below(5); i >= 0; i--) body[3 + below(body.length - 3)] = below(256);
    const crc = crc32Mpeg(Uint8Array.from(body));
    serviceName(serviceStream([...body, crc >>> 24, (crc >>> 16) & 255, (crc >>> 8) & 255, crc & 255]));
  }
});
