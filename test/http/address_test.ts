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

test("AccessPolicy.classify() distinguishes loopback, same subnet and the rest", () => {
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

test("AccessPolicy.classify() knows every address of this machine in a subnet for its own", () => {
  const two: NetworkPort = {
    interfaces: () => [
      { name: "docker0", host: "10.0.0.1", prefixLength: 8, family: 4, loopback: false },
      { name: "eth0", host: "10.0.0.2", prefixLength: 24, family: 4, loopback: false },
    ],
    resolve: () => Promise.resolve([]),
  };
  const both = new AccessPolicy(two, {
    allowedHosts: [],
    publicUrl: null,
    trustedProxies: [],
    allowIntranet: true,
    allowInternet: false,
  });
  assertEquals(["10.0.0.1", "10.0.0.2", "10.0.0.3"].map((host) => both.classify(host)), [
    "loopback",
    "loopback",
    "intranet",
  ]);
});

test("AccessPolicy.allowsHostHeader() knows the machine's own name, and no other", () => {
  const hosts = (hostName: string) => {
    const named = new AccessPolicy({ ...network, hostName: () => hostName }, {
      allowedHosts: [],
      publicUrl: null,
      trustedProxies: [],
      allowIntranet: true,
      allowInternet: false,
    });
    return (header: string) => named.allowsHostHeader(header);
  };
  const nas = hosts("NAS");
  for (const header of ["nas", "nas:6878", "Nas.local:6878"]) assert(nas(header), header);
  for (const header of ["nas.evil.example", "nas2", "nas.local.evil.example", ".local", "local"]) {
    assert(!nas(header), header);
  }
  const full = hosts("nas.home.example");
  for (const header of ["nas", "nas.local:80"]) assert(full(header), header);
  assert(!full("nas.home.example"));
  const unknown = hosts("");
  for (const header of ["", ".local", "nas"]) assert(!unknown(header), header);
});

test("AccessPolicy.callerOf() says why nothing is known of a caller behind a proxy", () => {
  const through = { via: "1.1 proxy" };
  const unknownBehind = (trustedProxies: string[], headers: Record<string, string>) =>
    policy({ trustedProxies }).callerOf(request(headers), from("192.168.7.9")).unknownBehind;
  assertEquals(unknownBehind([], through), "untrusted");
  assertEquals(unknownBehind(["192.168.7.9"], through), "silent");
  assertEquals(unknownBehind(["192.168.7.9"], {}), "bare");
  assertEquals(unknownBehind([], {}), undefined);
  assertEquals(unknownBehind(["192.168.7.9"], { ...through, "x-forwarded-for": "8.8.8.8" }), undefined);
  const behindOwn = policy({ publicUrl: "https://tv.example.org/" });
  assertEquals(behindOwn.callerOf(request({}), from("127.0.0.1")).unknownBehind, "unmarked");
});

test("AccessPolicy.allows() follows the two settings and never refuses loopback", () => {
  const closed = policy({ allowIntranet: false });
  assertEquals([closed.allows("loopback"), closed.allows("intranet"), closed.allows("internet")], [true, false, false]);
  const open = policy({ allowInternet: true });
  assertEquals([open.allows("intranet"), open.allows("internet")], [true, true]);
});

test("AccessPolicy.allowsHostHeader() refuses names a rebinding page would carry", () => {
  const named = policy({ allowedHosts: ["nas.lan"], publicUrl: "https://tv.example.org/millrace" });
  const table: [string, boolean][] = [
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
    ["a1.localhost:6878", false],
    ["a@localhost", false],
    ["127.0.0.1:65536", false],
    ["127.0.0.1:99999", false],
    ["", false],
  ];
  for (const [header, allowed] of table) assertEquals(named.allowsHostHeader(header), allowed, header);
  assertEquals(hostName("[::1]:80"), "::1");
});

test("AccessPolicy.callerOf() names a caller by its IPv4 address, also when it comes mapped into IPv6", () => {
  const hostOf = (headers: Record<string, string>, host: string) =>
    policy({ trustedProxies: ["192.168.7.9"] }).callerOf(request(headers), from(host)).host;
  assertEquals(hostOf({}, "::ffff:10.77.31.2"), "10.77.31.2");
  assertEquals(hostOf({}, "FE80::1"), "fe80::1");
  assertEquals(hostOf({ "x-forwarded-for": "::ffff:8.8.4.4" }, "::ffff:192.168.7.9"), "8.8.4.4");
});

test("AccessPolicy.callerOf() believes only trusted proxies", () => {
  const trusting = policy({ trustedProxies: ["10.0.0.0/8", "192.168.7.9"] });
  const caller = (headers: Record<string, string>, host: string, by = trusting) => {
    const { host: told, addressClass } = by.callerOf(request(headers), from(host));
    return [told, addressClass];
  };
  const forwarded = { "x-forwarded-for": "1.2.3.4, 10.1.1.1" };
  assertEquals(caller(forwarded, "192.168.7.9"), ["1.2.3.4", "internet"]);
  assertEquals(caller({ forwarded: "for=1.2.3.4, for=10.1.1.1" }, "192.168.7.9"), ["1.2.3.4", "internet"]);
  assertEquals(caller({ "x-real-ip": "192.168.7.44" }, "192.168.7.9"), ["192.168.7.44", "intranet"]);
  const hop = (text: string) => caller({ "x-forwarded-for": text }, "10.0.0.1")[0];
  for (const text of ["1.2.3.4:5678", "9.9.9.9, 1.2.3.4:5678"]) assertEquals(hop(text), "1.2.3.4");
  for (const text of ["2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:80"]) assertEquals(hop(text), "2001:db8::1");
  // All that is known about an untrusted proxy is that it is one.
  for (const host of ["127.0.0.1", "192.168.7.5", "192.168.7.10", "::1", "8.8.8.8"]) {
    for (
      const headers of [
        forwarded,
        { "x-forwarded-for": "127.0.0.1" },
        { "x-forwarded-host": "nas.lan" },
        { "x-forwarded-proto": "https" },
        { forwarded: "for=127.0.0.1" },
        { via: "1.1 squid" },
        { "x-real-ip": "127.0.0.1" },
        { "cf-connecting-ip": "127.0.0.1" },
        { "true-client-ip": "127.0.0.1" },
        { "x-client-ip": "" },
      ] as Record<string, string>[]
    ) {
      const [told, addressClass] = caller(headers, host);
      assertEquals(addressClass, "internet", JSON.stringify(headers));
      // Neither the proxy's own sessions nor anybody else's.
      assertEquals(trusting.classify(told!), "internet");
    }
  }
});

test("AccessPolicy.callerOf() never takes a caller behind a proxy for a program on this machine", () => {
  const trusting = policy({ trustedProxies: ["127.0.0.1"] });
  const table: [Record<string, string>, string][] = [
    [{ "x-forwarded-for": "127.0.0.1" }, "intranet"],
    [{ "x-forwarded-for": "::1" }, "intranet"],
    [{ "x-forwarded-for": "::ffff:127.0.0.1" }, "intranet"],
    [{ "x-forwarded-for": "192.168.7.5" }, "intranet"],
    [{ forwarded: 'for="[::1]:80"' }, "intranet"],
    [{ "x-forwarded-for": "192.168.7.7" }, "intranet"],
    // A field that the proxy does not set is the caller's own: the farther of two counts.
    [{ "x-forwarded-for": "127.0.0.1", "x-real-ip": "8.8.8.8" }, "internet"],
    [{ "x-forwarded-for": "8.8.8.8", forwarded: "for=127.0.0.1" }, "internet"],
    [{ forwarded: "for=8.8.8.8", "x-forwarded-for": "192.168.7.7" }, "internet"],
    [{ "x-forwarded-for": "8.8.8.8, 127.0.0.1" }, "internet"],
    [{ "x-forwarded-for": "127.0.0.1, 8.8.8.8" }, "internet"],
    [{ via: "1.1 nginx" }, "internet"],
    [{ "x-forwarded-proto": "https" }, "internet"],
    ...["unknown", "junk, _hidden", "", " ", ",", "1.2.3.4, ", "x".repeat(5000), "[", "127.1", "0177.0.0.1"]
      .map((text): [Record<string, string>, string] => [{ "x-forwarded-for": text }, "internet"]),
    ...["for=unknown", "for=_hidden", "by=127.0.0.1", "for=127.0.0.1;for=8.8.8.8", "for=[::1]", "", "junk", 'for="']
      .map((text): [Record<string, string>, string] => [{ forwarded: text }, "internet"]),
  ];
  for (const [headers, addressClass] of table) {
    const caller = trusting.callerOf(request(headers), from("127.0.0.1"));
    assertEquals([caller.addressClass, caller.mayBeLocal], [addressClass as never, false], JSON.stringify(headers));
    assert(caller.host.length <= 80);
  }
});

test("AccessPolicy.callerOf() knows no program on this machine where a proxy may speak without a word of it", () => {
  const LOCAL_HOST = { host: "127.0.0.1:6878" };
  for (
    const by of [
      policy({ trustedProxies: ["127.0.0.1", "192.168.7.5"] }),
      policy({ publicUrl: "https://tv.example.org/millrace" }),
    ]
  ) {
    for (const host of ["127.0.0.1", "192.168.7.5"]) {
      const local = by.callerOf(request(LOCAL_HOST), from(host));
      assertEquals([local.addressClass, local.mayBeLocal], ["intranet", true]);
      const named = by.callerOf(request({ host: "tv.example.org" }), from(host));
      assertEquals([named.addressClass, named.mayBeLocal], ["internet", false]);
    }
  }
  // A proxy elsewhere that names no caller.
  const far = policy({ trustedProxies: ["192.168.7.9"] });
  assertEquals(far.callerOf(request(LOCAL_HOST), from("192.168.7.9")).addressClass, "internet");
  assertEquals(far.callerOf(request(LOCAL_HOST), from("127.0.0.1")).addressClass, "loopback");
  // Without any proxy.
  for (const publicUrl of [null, "http://localhost:6878", "http://127.0.0.1:6878", "http://[::1]:6878"]) {
    assertEquals(policy({ publicUrl }).callerOf(request(LOCAL_HOST), from("127.0.0.1")).addressClass, "loopback");
  }
});

test("AccessPolicy.allowsOrigin() allows the origins that it was given, exactly", () => {
  const by = policy({ allowedOrigins: ["https://TV.example:443/", "http://tv.lan:8080", "capacitor://localhost"] });
  for (const origin of ["https://tv.example", "http://tv.lan:8080", "capacitor://localhost"]) {
    assert(by.allowsOrigin(origin), origin);
  }
  for (
    const origin of ["http://tv.example", "https://tv.example.evil", "https://x.tv.example", "http://tv.lan", null]
  ) {
    assert(!by.allowsOrigin(origin), String(origin));
  }
  for (const text of ["*", "null", "https://*.example", "tv.example", "https://tv.example/page", "https://a@b", ""]) {
    assertThrows(() => policy({ allowedOrigins: [text] }), MillraceError, "allow-origin", text);
  }
});

test("AccessPolicy() refuses a proxy that is neither an address nor a range", () => {
  assertThrows(() => policy({ trustedProxies: ["proxy.lan"] }), MillraceError, "trust-proxy");
});

test("baseUrl() uses the public URL, a trusted proxy's headers, or the Host of the request", () => {
  const plain = request({ host: "127.0.0.1:6878", "x-forwarded-proto": "https", "x-forwarded-host": "nas.lan" });
  assertEquals(baseUrl(plain, from("10.0.0.1"), policy(), null), "http://127.0.0.1:6878");
  assertEquals(baseUrl(plain, from("10.0.0.1"), policy(), "https://x.org/sub/"), "https://x.org/sub");
  const trusting = policy({ trustedProxies: ["10.0.0.1"], allowedHosts: ["nas.lan"] });
  assertEquals(baseUrl(plain, from("10.0.0.1"), trusting, null), "https://nas.lan");
  const evil = request({ host: "127.0.0.1:6878", "x-forwarded-host": "evil.com" });
  assertEquals(baseUrl(evil, from("10.0.0.1"), trusting, null), "http://127.0.0.1:6878");
});
