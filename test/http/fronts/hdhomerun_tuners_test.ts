/** Tuners as programs set and ask them: channels, programs, targets, locks. */
import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { multiplexesOf, tunedTo } from "../../../src/http/fronts/hdhomerun/multiplexes.ts";
import { type StreamTarget, Tuners } from "../../../src/http/fronts/hdhomerun/tuners.ts";
import { MillraceError } from "../../../src/errors.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";

const LINEUP = [{ number: "1", title: "One" }, { number: "5.1", title: "Five (HD)\n" }];
const A = { host: "192.168.7.9", lockKey: 0 };
const B = { host: "192.168.7.10", lockKey: 0 };
const log = { log: () => {}, child: () => log };

function setUp(lineup = LINEUP) {
  const clock = new FakeClock();
  const sent: { number: string; to: StreamTarget; signal: AbortSignal; fail: (error: unknown) => void }[] = [];
  const send = (number: string, to: StreamTarget, signal: AbortSignal) =>
    new Promise<void>((_, fail) => void sent.push({ number, to, signal, fail }));
  return { clock, sent, tuners: new Tuners({ clock, log, lineup: () => Promise.resolve(lineup), send }) };
}

const fails = (promise: Promise<unknown>, message: string) => assertRejects(() => promise, MillraceError, message);

test("multiplexesOf() puts the lineup on frequencies of the map, each described in a packet", () => {
  assertEquals(multiplexesOf([]), []);
  const [one] = multiplexesOf(LINEUP);
  assertEquals([one!.channel, one!.frequencyHz], [14, 473_000_000]);
  assertEquals(one!.info, "1: 1 One\n2: 5.1 Five [HD]\ntsid=0x000E\n");
  const many = Array.from({ length: 5000 }, (_, at) => ({ number: String(at), title: "Ж".repeat(100) }));
  const all = multiplexesOf(many);
  assertEquals([all.length, new Set(all.map(({ frequencyHz }) => frequencyHz)).size], [49, 49]);
  for (const { info, entries } of all) {
    assert(new TextEncoder().encode(info).length <= 1300 && entries.length > 10, `${entries.length}`);
  }
  assertEquals(all.flatMap(({ entries }) => entries).slice(0, 900), many.slice(0, 900));
});

test("tunedTo() takes channels by number and by frequency", () => {
  const all = multiplexesOf(LINEUP);
  for (const name of ["us-bcast:14", "auto:473000000", "8vsb:473125000", "auto:14"]) {
    assertEquals(tunedTo(name, all), all[0], name);
  }
  assertEquals([tunedTo("auto:15", all), tunedTo("auto:479000000", all)], [null, null]);
  for (const name of ["14", "", "auto:", "auto:x", "a b:14"]) assertEquals(tunedTo(name, all), undefined, name);
});

test("Tuners.set() tunes to a frequency and a program of it, and status and streaminfo say so", async () => {
  const { tuners } = setUp();
  assertEquals(await tuners.get("/tuner0/status"), "ch=none lock=none ss=0 snq=0 seq=0 bps=0 pps=0");
  await tuners.set("/tuner0/channel", "auto:479000000", A);
  assertEquals(await tuners.get("/tuner0/status"), "ch=auto:479000000 lock=none ss=0 snq=0 seq=0 bps=0 pps=0");
  assertEquals(await tuners.get("/tuner0/streaminfo"), "none");
  await tuners.set("/tuner0/channel", "auto:473000000", A);
  assertEquals(await tuners.get("/tuner0/status"), "ch=auto:473000000 lock=8vsb ss=100 snq=100 seq=100 bps=0 pps=0");
  assertEquals((await tuners.get("/tuner0/streaminfo")).split("\n")[1], "2: 5.1 Five [HD]");
  assertEquals([await tuners.get("/tuner0/program"), await tuners.get("/tuner0/vchannel")], ["none", "none"]);
  await tuners.set("/tuner0/program", "2", A);
  assertEquals([await tuners.get("/tuner0/program"), await tuners.get("/tuner0/vchannel")], ["2", "5.1"]);
  assertEquals(await tuners.get("/tuner1/channel"), "none");
  await tuners.set("/tuner1/vchannel", "1", A);
  assertEquals([await tuners.get("/tuner1/channel"), await tuners.get("/tuner1/program")], ["auto:473000000", "1"]);
  await fails(tuners.set("/tuner0/program", "3", A), "streaminfo");
  await fails(tuners.set("/tuner0/vchannel", "7", A), "lineup.json");
  await fails(tuners.set("/tuner0/channel", "14", A), "us-bcast:14");
  await fails(tuners.get("/tuner9/status"), "get help");
  await fails(tuners.get("/sys/secret"), "get help");
  await fails(tuners.set("/sys/model", "x", A), "cannot be changed");
});

test("Tuners.set() sends a stream to the machine that asks alone, as what and where it says", async () => {
  const { tuners, sent } = setUp();
  const target = (value: string, user = A) => tuners.set("/tuner0/target", value, user);
  await fails(target("rtp://192.168.7.9:5000"), "streaminfo");
  await tuners.set("/tuner0/vchannel", "5.1", A);
  await fails(target("rtp://192.168.7.10:5000"), "only to the machine that asks");
  await fails(target("rtp://192.168.7.9:53"), "port");
  for (const value of ["192.168.7.9:5000", "http://192.168.7.9:5000", "rtp://host:5000", "rtp://[::1]:5000", ""]) {
    await fails(target(value), "target is named");
  }
  assertEquals(sent.length, 0);
  await target("rtp://192.168.7.9:5000");
  assertEquals(sent.map(({ number, to }) => [number, to]), [["5.1", { host: A.host, port: 5000, isRtp: true }]]);
  assertEquals(await tuners.get("/tuner0/target"), "rtp://192.168.7.9:5000");
  await tuners.set("/tuner0/vchannel", "1", A);
  assertEquals(sent.map(({ number, signal }) => [number, signal.aborted]), [["5.1", true], ["1", false]]);
  sent[1]!.fail(new MillraceError("not_found", "nobody sends it"));
  await settle();
  assertEquals(await tuners.get("/tuner0/debug"), "tun: ch=auto:473000000\nnet: nobody sends it\n");
  await target("udp://192.168.7.9:5001");
  assertEquals(sent[2]!.to, { host: A.host, port: 5001, isRtp: false });
  await target("none");
  assertEquals(sent[2]!.signal.aborted, true);
});

test("Tuners.set() ends a stream half a minute after the last sign of its machine", async () => {
  const { clock, tuners, sent } = setUp();
  await tuners.set("/tuner0/vchannel", "1", A);
  await tuners.set("/tuner0/target", "rtp://192.168.7.9:5000", A);
  for (let second = 0; second < 100; second++) {
    clock.advance(1000);
    tuners.seen(A.host);
  }
  assertEquals(sent[0]!.signal.aborted, false);
  for (let second = 0; second < 31; second++) {
    clock.advance(1000);
    tuners.seen(B.host);
  }
  assertEquals([sent[0]!.signal.aborted, await tuners.get("/tuner0/target")], [true, "none"]);
});

test("Tuners.set() leaves a locked tuner to the machine with its key, unless another forces it", async () => {
  const { clock, tuners } = setUp();
  await tuners.set("/tuner0/lockkey", "1234", A);
  assertEquals(await tuners.get("/tuner0/lockkey"), A.host);
  await fails(tuners.set("/tuner0/channel", "auto:14", B), `tuner 0 is locked by ${A.host}`);
  await fails(tuners.set("/tuner0/lockkey", "99", { ...B, lockKey: 99 }), "locked");
  await tuners.set("/tuner0/channel", "auto:14", { ...A, lockKey: 1234 });
  await tuners.set("/tuner0/lockkey", "none", { ...A, lockKey: 1234 });
  await tuners.set("/tuner0/lockkey", "99", B);
  await tuners.set("/tuner0/lockkey", "force", A);
  assertEquals(await tuners.get("/tuner0/lockkey"), "none");
  for (const key of ["0", "x", "4294967296", "-1"]) {
    await fails(tuners.set("/tuner0/lockkey", key, A), "key is a number");
  }
  await tuners.set("/tuner0/lockkey", "1", A);
  clock.advance(31_000);
  assertEquals(await tuners.get("/tuner0/lockkey"), "none");
});
