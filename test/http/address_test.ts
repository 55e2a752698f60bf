import { test } from "node:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { AccessPolicy, hostName } from "../../src/http/address.ts";
import { baseUrl } from "../../src/http/base-url.ts";
import { MillraceError } from "../../src/errors.ts";
import type { NetworkPort } from "../../src/ports.ts";

const network: NetworkPort = {
  interfaces: () => [
    { name: "lo", host: "127.0.0.1", prefixLength: 8, family: 4, loopback: true },
    { name: "eth0", host: "192.168.7.5", prefixLength: 24, family: 4, loopback: false },
    { name: "eth0", host: "fd00::5", prefixLength: 64, family: 6, loopback: false },
    { name: "eth0", host: "fe80::5%eth0", prefixLength: 64, family: 6, loopback: false },
  ],
  resolve: () => Promise.resolve([]),
};
const policy = (options: Partial<ConstructorParameters<typeof AccessPolicy>[1]> = {}) =>
  new AccessPolicy(network, {
    allowedHosts: [],
    publicUrl: null,
    trustedProxies: [],
    allowIntranet: true,
    allowInternet: false,
    ...options,
  });
const from = (host: string) => ({ remote: { host, port: 1 } });
const request = (headers: Record<string, string>) => new Request("http://127.0.0.1:6878/x", { headers });

test("AccessPolicy.classify() tells loopback, same subnet and the rest apart (B24)", () => {
  const table: [string, string][] = [
    ["127.0.0.1", "loopback"],
    ["127.9.9.9", "loopback"],
    ["::1", "loopback"],
    ["::ffff:127.0.0.1", "loopback"],
    ["192.168.7.5", "loopback"],
    ["192.168.7.77", "intranet"],
    ["::ffff:192.168.7.77", "intranet"],
    ["fd00::77", "intranet"],
    ["fe80::5%eth0", "loopback"],
    ["fe80::77%eth0", "intranet"],
    ["fe80::77", "intranet"],
    ["::ffff:8.8.8.8", "internet"],
    ["0.0.0.0", "internet"],
    ["127.1", "internet"],
    ["0177.0.0.1", "internet"],
    ["2130706433", "internet"],
    ["", "internet"],
    ["192.168.8.1", "internet"],
    ["8.8.8.8", "internet"],
    ["2001:db8::1", "internet"],
    ["garbage", "internet"],
  ];
  for (const [host, kind] of table) assertEquals(policy().classify(host), kind as never, host);
});

test("AccessPolicy.allows() follows the two settings and never refuses loopback", () => {
  const closed = policy({ allowIntranet: false });
  assertEquals([closed.allows("loopback"), closed.allows("intranet"), closed.allows("internet")], [true, false, false]);
  const open = policy({ allowInternet: true });
  assertEquals([open.allows("intranet"), open.allows("internet")], [true, true]);
});

test("AccessPolicy.allowsHostHeader() refuses names a rebinding page would carry (B24)", () => {
  const named = policy({ allowedHosts: ["nas.lan"], publicUrl: "https://tv.example.org/millrace" });
  const table: [string | null, boolean][] = [
    ["127.0.0.1:6878", true],
    ["localhost:6878", true],
    ["LOCALHOST", true],
    ["[::1]:6878", true],
    ["192.168.7.5:6878", true],
    ["nas.lan:6878", true],
    ["tv.example.org", true],
    ["evil.example.com", false],
    ["192.168.7.6", false],
    ["localhost.evil.com", false],
    ["a@localhost", false],
    ["", false],
    [null, false],
  ];
  for (const [header, allowed] of table) assertEquals(named.allowsHostHeader(header), allowed, String(header));
  assertEquals(hostName("[::1]:80"), "::1");
});

test("AccessPolicy.clientHost() believes X-Forwarded-For only from a trusted proxy (B2)", () => {
  const trusting = policy({ trustedProxies: ["10.0.0.0/8", "192.168.7.9"] });
  const forwarded = request({ "x-forwarded-for": "1.2.3.4, 10.1.1.1" });
  assertEquals(trusting.clientHost(forwarded, from("192.168.7.9")), "1.2.3.4");
  assertEquals(trusting.clientHost(forwarded, from("192.168.7.10")), "192.168.7.10");
  assertEquals(policy().clientHost(forwarded, from("10.0.0.1")), "10.0.0.1");
  const hop = (text: string) => trusting.clientHost(request({ "x-forwarded-for": text }), from("10.0.0.1"));
  for (const text of ["1.2.3.4:5678", "9.9.9.9, 1.2.3.4:5678"]) assertEquals(hop(text), "1.2.3.4");
  for (const text of ["2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:80"]) assertEquals(hop(text), "2001:db8::1");
});

test("AccessPolicy.clientHost() takes nobody for the proxy itself when that does not tell an address (B24)", () => {
  const trusting = policy({ trustedProxies: ["127.0.0.1"] });
  for (const text of ["unknown", "junk, _hidden", "", " ", ",", "1.2.3.4, ", "x".repeat(5000), "[", "127.1"]) {
    const host = trusting.clientHost(request({ "x-forwarded-for": text }), from("127.0.0.1"));
    assertEquals(trusting.classify(host), "internet", JSON.stringify(text));
    assert(host.length <= 64);
  }
  // It calls for itself.
  assertEquals(trusting.clientHost(request({}), from("127.0.0.1")), "127.0.0.1");
});

test("AccessPolicy() refuses a proxy that is neither an address nor a range", () => {
  assertThrows(() => policy({ trustedProxies: ["proxy.lan"] }), MillraceError, "trust-proxy");
});

test("baseUrl() uses the public URL, a trusted proxy's headers, or the Host of the request (B2)", () => {
  const plain = request({ host: "127.0.0.1:6878", "x-forwarded-proto": "https", "x-forwarded-host": "nas.lan" });
  assertEquals(baseUrl(plain, from("10.0.0.1"), policy(), null), "http://127.0.0.1:6878");
  assertEquals(baseUrl(plain, from("10.0.0.1"), policy(), "https://x.org/sub/"), "https://x.org/sub");
  const trusting = policy({ trustedProxies: ["10.0.0.1"], allowedHosts: ["nas.lan"] });
  assertEquals(baseUrl(plain, from("10.0.0.1"), trusting, null), "https://nas.lan");
  const evil = request({ host: "127.0.0.1:6878", "x-forwarded-host": "evil.com" });
  assertEquals(baseUrl(evil, from("10.0.0.1"), trusting, null), "http://127.0.0.1:6878");
});
