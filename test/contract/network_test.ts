import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { gatewaysOf, ipv6GatewaysOf } from "../../platform/shared/network.ts";
import { deferred, ports, soon } from "./support.ts";

test("NetworkPort.interfaces() knows the loopback interface and its prefix", () => {
  const found = ports.network.interfaces();
  const loopback = found.find(({ host }) => host === "127.0.0.1");
  assert(loopback !== undefined);
  assertEquals([loopback.family, loopback.loopback, loopback.prefixLength], [4, true, 8]);
  for (const { host, family, prefixLength } of found) {
    assertEquals(host.includes(":"), family === 6, host);
    assert(prefixLength >= 0 && prefixLength <= (family === 4 ? 32 : 128), `${host}/${prefixLength}`);
  }
});

test("NetworkPort.resolve() answers literal addresses as they are and names by their addresses", async () => {
  assertEquals(await ports.network.resolve("192.0.2.7", { signal: soon() }), ["192.0.2.7"]);
  assertEquals(await ports.network.resolve("::1", { signal: soon() }), ["::1"]);
  const local = await ports.network.resolve("localhost", { signal: soon() });
  assert(local.includes("127.0.0.1") || local.includes("::1"), local.join());
});

test("NetworkPort.resolve() rejects with not_found, or with aborted when the signal fires", async () => {
  const missing = await assertRejects(
    () => ports.network.resolve("no-such-host.invalid", { signal: soon() }),
    MillraceError,
  );
  assertEquals(missing.code, "not_found");
  const given = await assertRejects(
    () => ports.network.resolve("localhost", { signal: AbortSignal.abort() }),
    MillraceError,
  );
  assertEquals(given.code, "aborted");
});

test("Ports.clock runs timers once, in time, and cancels them", async () => {
  const { clock } = ports;
  assert(Math.abs(clock.now() - Date.now()) < 1000);
  const before = clock.monotonic();
  const ran = deferred("a timer");
  // The clock's timers keep no process alive, so something else must.
  const hold = setInterval(() => {}, 1000);
  let cancelledRan = false;
  clock.setTimeout(() => (cancelledRan = true), 5).cancel();
  clock.setTimeout(() => ran.resolve(), 20);
  await ran.promise;
  clearInterval(hold);
  assert(clock.monotonic() - before >= 18, `${clock.monotonic() - before} ms`);
  assertEquals(cancelledRan, false);
  // Beyond what timers carry it must wait, not fire at once.
  clock.setTimeout(() => (cancelledRan = true), 2 ** 40).cancel();
});

test("Ports.runtime says where it runs", () => {
  const { name, version, platform } = ports.runtime;
  assert(["deno", "node", "bun"].includes(name));
  assert(/^\d+\.\d+/.test(version), version);
  assert(["linux", "darwin", "win32", "android"].includes(platform));
});

test("NetworkPort.gateways() returns literal addresses, none of them this machine's own", async () => {
  const own = ports.network.interfaces().map(({ host }) => host);
  for (const host of await ports.network.gateways!(4)) {
    assert(/^\d+\.\d+\.\d+\.\d+$/.test(host) && !own.includes(host), host);
  }
});

test("gatewaysOf() reads the routers of default routes from a Linux list", () => {
  const head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT";
  const line = (destination: string, gateway: string, mask: string) =>
    `eth0\t${destination}\t${gateway}\t0003\t0\t0\t0\t${mask}\t0\t0\t0   `;
  const table: [string[], string[]][] = [
    [[head], []],
    [[head, line("00000000", "0101A8C0", "00000000"), line("0001A8C0", "00000000", "00FFFFFF")], ["192.168.1.1"]],
    [[head, line("00000000", "00000000", "00000000")], []],
    [[head, line("00000000", "0101A8C0", "000000FF"), line("0A000000", "0101A8C0", "00000000")], []],
    [[line("00000000", "0101A8C0", "00000000"), line("00000000", "0101A8C0", "00000000")], ["192.168.1.1"]],
    [[line("00000000", "nonsense", "00000000"), "", "\0"], []],
  ];
  for (const [lines, found] of table) assertEquals(gatewaysOf(lines.join("\n")), found);
});

test("ipv6GatewaysOf() reads the routers of default routes, and their interfaces, from a Linux list", () => {
  const any = "0".repeat(32);
  const router = "fe80" + "0".repeat(24) + "0001";
  const line = (destination: string, length: string, nextHop: string, name = "eth0") =>
    `${destination} ${length} ${any} 00 ${nextHop} 00000400 00000001 00000000 00000003     ${name}`;
  const table: [string[], string[]][] = [
    [[""], []],
    [[line(any, "00", router), line(any, "00", router), line(any, "00", router, "wlan0")], [
      "fe80::1%eth0",
      "fe80::1%wlan0",
    ]],
    [[line(any, "00", any, "lo"), line(any, "40", router), line(router, "00", router)], []],
    [[line(any, "00", "20010db8" + "0".repeat(23) + "1")], ["2001:db8::1%eth0"]],
    [[line(any, "00", "nonsense"), "\0", `${any} 00`], []],
  ];
  for (const [lines, found] of table) assertEquals(ipv6GatewaysOf(lines.join("\n")), found);
});
