/** Connections of torrents on a line that others use as well, on virtual time. */
import { test } from "node:test";
import { assert, assertEquals, assertLess } from "@std/assert";
import type { UtpConnection } from "../../src/utp/utp-connection.ts";
import { YieldDelay } from "../../src/utp/yield-delay.ts";
import { Congestion } from "../../src/utp/congestion.ts";
import { UtpLab } from "./support.ts";

/** 2 Mbit/s. */
const LINE_BYTES_PER_MS = 250;
const FAR = "203.0.113.9";

/** Sends as fast as it may until `stop`. */
function fill(connection: UtpConnection): { stop(): void } {
  const chunk = new Uint8Array(16_384);
  let isOn = true;
  const go = () => {
    while (isOn && connection.write(chunk));
  };
  connection.open({ data: () => {}, end: () => {}, drain: go, close: () => {} });
  go();
  return { stop: () => isOn = false };
}

/** Counts what arrives. */
function count(connection: UtpConnection): { bytes: number } {
  const counted = { bytes: 0 };
  connection.open({ data: (chunk) => counted.bytes += chunk.length, end: () => {}, drain: () => {}, close: () => {} });
  return counted;
}

for (const queueMs of [50, 200]) {
  test(`a connection of a torrent leaves 90 % of a line with a queue of ${queueMs} ms to one that sends like TCP`, async () => {
    const lab = new UtpLab({ latencyMs: 25, line: { to: FAR, bytesPerMs: LINE_BYTES_PER_MS, queueMs } });
    const [torrent, other, far] = [lab.end("203.0.113.1"), lab.end("203.0.113.2"), lab.end(FAR)];
    let incoming: UtpConnection | null = null;
    far.endpoint.listen((connection) => {
      incoming = connection;
      arrived = count(connection);
    });
    let arrived = { bytes: 0 };
    const address = { host: FAR, port: await far.endpoint.bind() };
    const dial = torrent.endpoint.connect(address, new AbortController());
    await lab.clock.advanceAsync(200);
    const own = await dial;
    const yielding = fill(own);
    await lab.clock.advanceAsync(100);
    assert(incoming !== null, "it is accepted");
    // Alone, it uses the line.
    await lab.clock.advanceAsync(4_000);
    const before = arrived.bytes;
    await lab.clock.advanceAsync(4_000);
    const most = 4_000 * LINE_BYTES_PER_MS;
    assert(arrived.bytes - before > 0.85 * most, `alone ${(arrived.bytes - before) / most}`);
    const [like, end] = await lab.punch(
      [other, { host: "203.0.113.2", port: await other.endpoint.bind() }],
      [far, address],
    );
    assert(like?.status === "fulfilled" && end?.status === "fulfilled");
    const steady = count(end.value);
    const rival = fill(like.value);
    await lab.clock.advanceAsync(3_000);
    const from = [arrived.bytes, steady.bytes];
    await lab.clock.advanceAsync(10_000);
    const [mine, theirs] = [arrived.bytes - from[0]!, steady.bytes - from[1]!];
    assert(theirs > 0.9 * (mine + theirs), `${theirs} of ${mine + theirs} bytes`);
    assert(theirs + mine > 0.8 * 10_000 * LINE_BYTES_PER_MS, `${mine + theirs} bytes`);
    // It comes back when the line is free.
    rival.stop();
    await lab.clock.advanceAsync(8_000);
    const after = arrived.bytes;
    await lab.clock.advanceAsync(2_000);
    assert(arrived.bytes - after > 0.7 * 2_000 * LINE_BYTES_PER_MS, `afterwards ${arrived.bytes - after}`);
    yielding.stop();
    own.abort();
    like.value.abort();
  });
}

test("YieldDelay.room is the share of the allowed delay that is left, whatever the clocks say", () => {
  for (const offset of [0, 5_000_000, 0xffff_fff0]) {
    const delay = new YieldDelay();
    const rooms = [delay.room];
    const sample = (ms: number, atMs: number) => {
      for (let n = 0; n < 8; n++) delay.sample((offset + 1_000 * ms) >>> 0, atMs);
      rooms.push(delay.room);
    };
    sample(30, 0);
    sample(30 + 12.5, 100);
    sample(30 + 75, 200);
    // One packet in eight that did not wait is enough: a busy receiver takes the others late.
    delay.sample((offset + 30_000) >>> 0, 300);
    rooms.push(delay.room);
    // A longer way counts as the path's own after two periods.
    for (const atMs of [60_001, 90_000, 120_002, 150_000]) sample(90, atMs);
    assertEquals([...rooms.slice(0, 5), rooms.at(-1)], [1, 1, 0.5, -2, 1, 1]);
  }
});

test("Congestion makes way once a minute, so that the path's own delay shows, and comes back by doubling", () => {
  const congestion = new Congestion(true);
  congestion.measured(50);
  const round = (nowMs: number) => {
    congestion.delayed(30_000, nowMs);
    congestion.arrived(congestion.windowBytes, true);
  };
  let nowMs = 0;
  for (; nowMs < 59_000; nowMs += 50) round(nowMs);
  const before = congestion.windowBytes;
  for (; nowMs < 60_050; nowMs += 50) congestion.delayed(30_000, nowMs);
  assertLess(congestion.windowBytes, before / 10);
  for (let n = 0; n < 10; n++) round(nowMs += 50);
  assert(congestion.windowBytes >= before, `${congestion.windowBytes} of ${before} bytes`);
});
