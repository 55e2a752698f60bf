/** Names with several addresses, of which some lead nowhere (RFC 8305). */
import { test } from "node:test";
import { assertEquals, assertRejects } from "@std/assert";
import { TcpAddressRace } from "../../platform/shared/address-race.ts";
import { loadPorts } from "../../platform/detect.ts";
import { createFetch } from "../../platform/shared/fetch.ts";
import { guardedOpen } from "../../src/content/fetch-guard.ts";
import { abortError, MillraceError } from "../../src/errors.ts";
import type { SocketAddress, TcpConnection } from "../../src/ports.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";
import { serveWeb } from "../support/web.ts";

const [SIX, SIX_TOO, FOUR, FOUR_TOO] = ["2001:db8::1", "2001:db8::2", "192.0.2.1", "192.0.2.2"] as const;

/** A network in which addresses are reached, refused, or silent. */
function network(reached: readonly string[], refused: readonly string[] = []) {
  const clock = new FakeClock();
  const tried: string[] = [];
  let open = 0;
  const connect = (target: SocketAddress, { signal }: { signal: AbortSignal }): Promise<TcpConnection> => {
    tried.push(`${clock.monotonic()} ${target.host}`);
    if (refused.includes(target.host)) return Promise.reject(new MillraceError("connection_failed", "refused"));
    if (reached.includes(target.host)) {
      open++;
      return Promise.resolve({ open() {}, abort: () => void open-- } as unknown as TcpConnection);
    }
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(abortError(signal))));
  };
  return { clock, tried, race: new TcpAddressRace({ tcp: { connect }, clock }), open: () => open };
}

async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 50) {
    for (let i = 0; i < 5; i++) await settle();
    clock.advance(Math.min(left, 50));
  }
  for (let i = 0; i < 5; i++) await settle();
}

const { signal } = new AbortController();
const both = { addresses: [SIX, FOUR], port: 80, signal };

test("TcpAddressRace takes IPv6 where it works, and tries nothing else", async () => {
  const { clock, tried, race, open } = network([SIX, FOUR]);
  assertEquals(await race.order(both), [SIX, FOUR]);
  await pass(clock, 1_000);
  assertEquals([tried, open(), clock.pendingTimers], [["0 2001:db8::1"], 0, 0]);
});

test("TcpAddressRace takes IPv4 250 ms later where IPv6 is silent, and remembers that for ten minutes", async () => {
  const { clock, tried, race, open } = network([FOUR]);
  const order = race.order(both);
  await pass(clock, 300);
  assertEquals(await order, [FOUR, SIX]);
  assertEquals(tried, ["0 2001:db8::1", "250 192.0.2.1"]);
  assertEquals(await race.order(both), [FOUR, SIX]);
  assertEquals([tried.length, open(), clock.pendingTimers], [2, 0, 0]);
  await pass(clock, 600_000);
  const again = race.order(both);
  await pass(clock, 300);
  assertEquals([await again, tried.length], [[FOUR, SIX], 4]);
  race.forget(both);
  void race.order(both);
  await pass(clock, 50);
  assertEquals(tried.length, 5);
});

test("TcpAddressRace takes IPv4 at once where IPv6 is refused", async () => {
  const { race, tried } = network([FOUR], [SIX]);
  assertEquals(await race.order(both), [FOUR, SIX]);
  assertEquals(tried, ["0 2001:db8::1", "0 192.0.2.1"]);
});

test("TcpAddressRace lets the families take turns, and tries four addresses of a name with many", async () => {
  const { clock, race, tried } = network([FOUR_TOO]);
  const order = race.order({ ...both, addresses: [SIX, SIX_TOO, "2001:db8::3", "2001:db8::4", FOUR, FOUR_TOO] });
  await pass(clock, 1_000);
  assertEquals(await order, [FOUR_TOO, SIX, FOUR, SIX_TOO]);
  assertEquals(tried.map((text) => text.split(" ")[1]), [SIX, FOUR, SIX_TOO, FOUR_TOO]);
});

test("TcpAddressRace ends without a winner after five seconds, or with the signal's reason", async () => {
  const { clock, race } = network([]);
  const order = race.order(both);
  await pass(clock, 5_000);
  assertEquals([await order, clock.pendingTimers], [[SIX, FOUR], 0]);
  const ending = new AbortController();
  const failing = assertRejects(() => race.order({ ...both, signal: ending.signal }), MillraceError);
  await pass(clock, 100);
  ending.abort(new MillraceError("aborted", "enough"));
  assertEquals((await failing).message, "enough");
  assertEquals(clock.pendingTimers, 0);
});

test("createFetch() and guardedOpen() reach a server by IPv4 whose IPv6 address refuses, with one request each", async () => {
  const ports = await loadPorts({ log: { level: "error" } });
  let requests = 0;
  const web = await serveWeb((_request, response) => response.end(String(++requests)));
  try {
    const resolve = () => Promise.resolve(["::1", "127.0.0.1"]);
    const network = { ...ports.network, resolve };
    const fetch = createFetch({ ...ports, network });
    const answer = await fetch(`http://both.example:${web.port}/`, { redirect: "manual" });
    assertEquals([answer.status, await answer.text()], [200, "1"]);
    const options = { timeoutMs: 10_000, allowPrivate: true };
    const opened = await guardedOpen({ ...ports, network }, `http://both.example:${web.port}/`, options, signal);
    assertEquals([await new Response(opened.body).text(), requests], ["2", 2]);
  } finally {
    await web.close();
  }
});
