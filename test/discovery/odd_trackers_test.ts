/** Answers of trackers as users have met them, which other clients read wrongly or refused. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { encodeBencode } from "../../src/bytes/bencode.ts";
import { parseHttpAnswer } from "../../src/discovery/http-tracker.ts";
import { scheduleAfter } from "../../src/discovery/intervals.ts";
import type { SocketAddress } from "../../src/ports.ts";
import { compact } from "./support/http-tracker.ts";

const PEER = { host: "10.0.0.1", port: 6881 };
const MINUTE_MS = 60_000;

const ANSWERS: readonly [name: string, answer: Record<string, unknown>, peers: SocketAddress[]][] = [
  ["has no peers at all", { interval: 1800, complete: 1 }, []],
  ["has IPv6 peers alone", { interval: 1800, peers6: new Uint8Array(18).fill(0x20) }, [
    { host: "2020:2020:2020:2020:2020:2020:2020:2020", port: 0x2020 },
  ]],
  ["has an empty list of peers beside IPv6 peers", { peers: [], peers6: new Uint8Array(18).fill(0x20) }, [
    { host: "2020:2020:2020:2020:2020:2020:2020:2020", port: 0x2020 },
  ]],
  ["has both kinds", { peers: compact("10.0.0.1:6881"), peers6: new Uint8Array(18).fill(0x20) }, [PEER, {
    host: "2020:2020:2020:2020:2020:2020:2020:2020",
    port: 0x2020,
  }]],
  ["lists IPv6 peers as dictionaries", { peers: [{ ip: "2001:db8::1", port: 6881 }] }, [
    { host: "2001:db8::1", port: 6881 },
  ]],
  ["has peers without a port", { peers: new Uint8Array([10, 0, 0, 2, 0, 0, 10, 0, 0, 1, 0x1a, 0xe1]) }, [PEER]],
  ["has a list that was cut", { peers: new Uint8Array([10, 0, 0, 1, 0x1a, 0xe1, 10, 0, 0]) }, [PEER]],
  ["lists ports as text", { peers: [{ ip: "10.0.0.1", port: "6881" }, { ip: "10.0.0.1", port: 6881 }] }, [PEER]],
  ["gives the counts as text", { peers: compact("10.0.0.1:6881"), complete: "3", incomplete: -1 }, [PEER]],
  ["names others' peer ids", { peers: [{ ip: "10.0.0.1", port: 6881, "peer id": "x".repeat(20) }] }, [PEER]],
  ["has an external address and unknown keys", {
    "external ip": new Uint8Array([192, 0, 2, 1]),
    "flags": { x: [1, { y: "z" }] },
    peers: compact("10.0.0.1:6881"),
  }, [PEER]],
];
for (const [name, answer, peers] of ANSWERS) {
  test(`parseHttpAnswer() reads an answer that ${name}`, () => {
    assertEquals(parseHttpAnswer(encodeBencode(answer as never)).peers, peers);
  });
}

const INTERVALS: readonly [interval: unknown, least: unknown, regularMs: number, leastMs: number][] = [
  // Regular announces follow the interval, not the least one; and neither is cut at half an hour.
  [2000, 300, 2_000_000, 300_000],
  [3600, undefined, 3_600_000, 300_000],
  [0, 0, 30 * MINUTE_MS, 5 * MINUTE_MS],
  [1, 1, MINUTE_MS, MINUTE_MS],
  [-1, -1, 30 * MINUTE_MS, 5 * MINUTE_MS],
  // 1000 hours, and what does not fit into 32 bits.
  [3_600_000, undefined, 30 * MINUTE_MS, 5 * MINUTE_MS],
  [2 ** 40, 2 ** 40, 30 * MINUTE_MS, 5 * MINUTE_MS],
  [10_000, 20_000, 120 * MINUTE_MS, 120 * MINUTE_MS],
  ["1800", undefined, 30 * MINUTE_MS, 5 * MINUTE_MS],
];
for (const [interval, least, intervalMs, minIntervalMs] of INTERVALS) {
  test(`scheduleAfter() asks at sensible times when the interval is ${interval} and the least one ${least}`, () => {
    const answer = encodeBencode({ interval, "min interval": least, peers: compact("10.0.0.1:6881") } as never);
    assertEquals(scheduleAfter(parseHttpAnswer(answer)), { intervalMs, minIntervalMs });
  });
}
