/** Reading what devices of the local network say; test/interop has a real renderer. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import type { InterfaceAddress, SocketAddress } from "../../src/ports.ts";
import { readDescription } from "../../src/players/upnp/description.ts";
import { describeMedia, DlnaRenderer, readTime, writeTime } from "../../src/players/upnp/renderer.ts";
import { RendererFinder } from "../../src/players/upnp/renderer-finder.ts";
import { callAction } from "../../src/upnp/soap.ts";
import { readAnswer, searchDevices } from "../../src/upnp/ssdp.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { silent } from "../support/fault-log.ts";
import { FakeStream } from "./support.ts";

const TARGET = "urn:schemas-upnp-org:device:MediaRenderer:1";
const LOCATION = new URL("http://192.168.7.9:49494/description.xml");
const { signal } = new AbortController();

function answer(fields: Record<string, string> = {}, first = "HTTP/1.1 200 OK"): string {
  const all = {
    USN: `uuid:tv::${TARGET}`,
    ST: TARGET,
    Location: LOCATION.href,
    "Cache-Control": "max-age=1800",
    ...fields,
  };
  return [first, ...Object.entries(all).map(([name, value]) => `${name}: ${value}`), "", ""].join("\r\n");
}

test("readAnswer() takes answers about the target that name a description on the machine that sent them", () => {
  assertEquals(readAnswer(answer(), TARGET, "192.168.7.9"), { usn: `uuid:tv::${TARGET}`, location: LOCATION });
  const refused = [
    answer({}, "NOTIFY * HTTP/1.1"),
    answer({ ST: "upnp:rootdevice" }),
    answer({ USN: "" }),
    answer({ USN: "x".repeat(300) }),
    answer({ Location: "http://192.168.7.1/admin" }),
    answer({ Location: "https://192.168.7.9/x" }),
    answer({ Location: "file:///etc/passwd" }),
    answer({ Location: "nonsense" }),
    "",
    "\0\0\0",
  ];
  for (const text of refused) assertEquals(readAnswer(text, TARGET, "192.168.7.9"), null, text);
  assertEquals(readAnswer(answer(), TARGET, "192.168.7.10"), null, "another sender");
});

const address = (host: string, more: Partial<InterfaceAddress> = {}): InterfaceAddress => {
  return { name: "eth0", host, prefixLength: 24, family: 4, loopback: false, ...more };
};

const HOME4 = [address("127.0.0.1", { loopback: true }), address("192.168.7.5"), address("fe80::1", { family: 6 })];

/** A search, and a way to answer it. */
async function search(expected: readonly string[] = [], interfaces: readonly InterfaceAddress[] = HOME4) {
  const clock = new FakeClock();
  const bound: string[] = [];
  const sent: string[] = [];
  let closed = 0;
  let hear: (data: Uint8Array, from: SocketAddress) => void = () => {};
  const searching = searchDevices(
    {
      clock,
      log: silent,
      network: {
        resolve: (host) => Promise.resolve([host]),
        interfaces: () => [...interfaces],
      },
      udp: {
        bind: ({ host, multicastInterface }) => {
          bound.push([host, multicastInterface].filter((part) => part !== undefined).join(" "));
          return Promise.resolve({
            address: { host: "0.0.0.0", port: 5 },
            onMessage: (handler) => void (hear = handler),
            send: (data, to) =>
              Promise.resolve(void sent.push(`${to.host}:${to.port} ${new TextDecoder().decode(data)}`)),
            close: () => void closed++,
          });
        },
      },
    },
    TARGET,
    signal,
    { expected },
  );
  await clock.advanceAsync(0);
  return {
    clock,
    bound,
    sent,
    closed: () => closed,
    say: (host: string, text: string) => hear(new TextEncoder().encode(text), { host, port: 1900 }),
    /** `count` answers of one machine. */
    shout: (host: string, count: number) => {
      for (let n = 0; n < count; n++) {
        const text = answer({ USN: `uuid:${n}`, Location: `http://${host}/${n}` });
        hear(new TextEncoder().encode(text), { host, port: 1900 });
      }
    },
    found: async () => {
      await clock.advanceAsync(1300);
      return await searching;
    },
  };
}

test("searchDevices() asks twice on each network, ignores answers from elsewhere, and closes its sockets", async () => {
  const { clock, bound, sent, closed, say, found: end } = await search();
  say("192.168.7.9", answer());
  say("192.168.7.9", answer());
  say("8.8.8.8", answer({ USN: "uuid:far", Location: "http://8.8.8.8/d.xml" }));
  const found = await end();
  assertEquals([bound, closed(), clock.pendingTimers], [["192.168.7.5"], 1, 0]);
  assertEquals(sent.length, 2);
  assertMatch(
    sent[0]!,
    /^239\.255\.255\.250:1900 M-SEARCH \* HTTP\/1\.1\r\nHOST: 239[^]*MAN: "ssdp:discover"\r\nMX: 1\r\nST: urn[^]*\r\n\r\n$/,
  );
  assertEquals(found.map(({ location }) => location.href), [LOCATION.href]);
});

test("searchDevices() asks over IPv6 from the address that others reach, and trusts no address of a link", async () => {
  const v6 = (host: string) => address(host, { family: 6, prefixLength: 64 });
  const own = [v6("fe80::5"), v6("fd00:7::5"), v6("2a02:26f7:77::5"), address("::1", { family: 6, loopback: true })];
  const { bound, sent, say, found } = await search([], own);
  const at = (host: string) => answer({ USN: `uuid:${host}`, Location: `http://[${host}]:49494/d.xml` });
  say("2a02:26f7:77::9", at("2a02:26f7:77::9"));
  say("2a02:26f7:77::8", at("2a02:26f7:77::7"));
  say("2a02:26f7:88::9", at("2a02:26f7:88::9"));
  say("fe80::9%eth0", at("2a02:26f7:77::6"));
  say("fe80::9%eth0", at("fe80::9"));
  say("192.168.7.9", answer());
  assertEquals((await found()).map(({ location }) => location.href), ["http://[2a02:26f7:77::9]:49494/d.xml"]);
  assertEquals(bound, ["2a02:26f7:77::5 ::%eth0"]);
  const groups = sent.map((text) => text.match(/^(\S+) .*\r\nHOST: (\S+)\r/)!.slice(1).join());
  const all = ["ff02::c", "ff05::c", "ff0e::c"].map((group) => `${group}:1900,[${group}]:1900`);
  assertEquals(groups, [...all, ...all]);
});

test("searchDevices() leaves room for others when one machine answers for many devices, or with another's name", async () => {
  const { say, shout, found } = await search();
  shout("192.168.7.66", 100);
  say("192.168.7.66", answer({ Location: "http://192.168.7.66/tv" }));
  say("192.168.7.9", answer());
  say("192.168.7.67", answer({ Location: "http://192.168.7.67/tv" }));
  const hosts = (await found()).map(({ location }) => location.hostname);
  assertEquals([hosts.length, hosts.slice(16)], [18, ["192.168.7.9", "192.168.7.67"]]);
});

test("searchDevices() hears expected machines, however many answer, and 64 devices of others", async () => {
  const { say, shout, found } = await search(["192.168.7.9"]);
  for (let n = 100; n < 200; n++) shout(`192.168.7.${n}`, 2);
  say("192.168.7.10", answer({ Location: "http://192.168.7.10/tv" }));
  say("192.168.7.9", answer());
  const answers = await found();
  assertEquals([answers.length, answers.at(-1)!.location.href], [65, LOCATION.href]);
});

const SERVICE = (name: string, url: string) =>
  `<service><serviceType>urn:schemas-upnp-org:service:${name}:1</serviceType><controlURL>${url}</controlURL></service>`;
const device = (services: string, more = "") =>
  `<?xml version="1.0"?><root xmlns="urn:schemas-upnp-org:device-1-0">${more}<device><friendlyName>Wohnzimmer &amp; Küche</friendlyName>` +
  `<UDN>uuid:4d696c6c-1</UDN><iconList><icon><url>http://evil.example/i.png</url></icon><icon><url>/i.png</url></icon></iconList>` +
  `<serviceList>${services}</serviceList></device></root>`;

test("readDescription() finds the services of a renderer, on the device itself and nowhere else", () => {
  const read = readDescription(device(SERVICE("AVTransport", "/av") + SERVICE("ConnectionManager", "cm")), LOCATION);
  assertEquals([read.udn, read.name, read.icon], [
    "uuid:4d696c6c-1",
    "Wohnzimmer & Küche",
    "http://192.168.7.9:49494/i.png",
  ]);
  assertEquals(read.avTransport.controlUrl.href, "http://192.168.7.9:49494/av");
  assertEquals(read.connectionManager?.controlUrl.href, "http://192.168.7.9:49494/cm");
  const base = "<URLBase>http://192.168.7.9:8080/x/</URLBase>";
  const based = readDescription(device(SERVICE("AVTransport", "av"), base), LOCATION);
  assertEquals([based.avTransport.controlUrl.href, based.connectionManager], ["http://192.168.7.9:8080/x/av", null]);
  const refused = [
    device(""),
    device(SERVICE("AVTransport", "http://192.168.7.1/reboot")),
    device(SERVICE("AVTransport", "https://192.168.7.9/av")),
    device(SERVICE("AVTransport", "/av")).replace("uuid:4d696c6c-1", "<b/>"),
    "<html>",
    "",
    "no XML",
    '<!DOCTYPE a [<!ENTITY x "y"><!ENTITY z "&x;&x;">]><root>&z;</root>',
  ];
  for (const text of refused) {
    assertEquals(assertThrows(() => readDescription(text, LOCATION), MillraceError).code, "protocol_violation", text);
  }
});

test("readTime() and writeTime() convert the times of AVTransport, and readTime() rejects others", () => {
  assertEquals(["00:00:00", "0:01:02.500", "12:34:56", "100:00:01"].map(readTime), [0, 62, 45_296, 360_001]);
  assertEquals(["NOT_IMPLEMENTED", "", "1:2", "00:61:00", "-1:00:00"].map(readTime), Array(5).fill(null));
  assertEquals([0, 59.9, 3661, 360_001].map(writeTime), ["00:00:00", "00:00:59", "01:01:01", "100:00:01"]);
});

test("describeMedia() escapes a title that is anything but XML, and says whether the stream can be sought", () => {
  const stream = { url: "http://h/engine/r/a?b=1&c=2", title: '</dc:title><res>\u0000"&\ud800', isLive: false };
  const text = describeMedia(stream, "video/mp2t");
  assert(text.includes("<dc:title>&lt;/dc:title&gt;&lt;res&gt;\ufffd&quot;&amp;\ufffd</dc:title>"), text);
  assert(text.includes("http://h/engine/r/a?b=1&amp;c=2</res>"));
  assertMatch(text, /protocolInfo="http-get:\*:video\/mp2t:DLNA\.ORG_OP=11;DLNA\.ORG_CI=0;DLNA\.ORG_FLAGS=017[0]{29}"/);
  assertMatch(describeMedia({ ...stream, isLive: true }, "video/mpeg"), /:video\/mpeg:DLNA\.ORG_OP=00;/);
});

const AV = { type: "urn:schemas-upnp-org:service:AVTransport:1", controlUrl: new URL("http://192.168.7.9/av") };

/** A device that answers each action as the test says, and records the calls. */
function fakeDevice(answers: (action: string) => Response) {
  const asked: { action: string; body: string }[] = [];
  const fetcher = (_url: unknown, init: RequestInit = {}) => {
    const action = /#(\w+)"/.exec(new Headers(init.headers).get("soapaction") ?? "")?.[1] ?? "";
    asked.push({ action, body: String(init.body) });
    return Promise.resolve(answers(action));
  };
  return { asked, fetch: fetcher as typeof fetch };
}
const soap = (values: string) =>
  new Response(`<s:Envelope xmlns:s="x"><s:Body><u:R xmlns:u="y">${values}</u:R></s:Body></s:Envelope>`);

test("callAction() escapes arguments, and reports a device's refusal in its own words", async () => {
  const good = fakeDevice(() => soap("<RelTime>0:00:05</RelTime>"));
  const said = await callAction(good.fetch, AV, "GetPositionInfo", { InstanceID: "0", A: "<&>" }, signal);
  assertEquals([said("RelTime"), said("Nothing")], ["0:00:05", ""]);
  assertMatch(
    good.asked[0]!.body,
    /<u:GetPositionInfo xmlns:u="urn:[^"]+"><InstanceID>0<\/InstanceID><A>&lt;&amp;&gt;<\/A>/,
  );
  const refusing = fakeDevice(() => {
    const detail =
      "<UPnPError><errorCode>716</errorCode><errorDescription>Resource not found</errorDescription></UPnPError>";
    return new Response(`<s:Envelope xmlns:s="x"><s:Body>${detail}</s:Body></s:Envelope>`, { status: 500 });
  });
  const refused = await assertRejects(() => callAction(refusing.fetch, AV, "Play", {}, signal), MillraceError);
  assertEquals([refused.code, refused.message], ["unavailable", "the device refuses Play: Resource not found (716)"]);
  const odd = fakeDevice(() => new Response("nonsense", { status: 404 }));
  await assertRejects(() => callAction(odd.fetch, AV, "Play", {}, signal), MillraceError, "HTTP 404");
  const huge = fakeDevice(() => new Response("x".repeat(300_000)));
  assertEquals(
    (await assertRejects(() => callAction(huge.fetch, AV, "Play", {}, signal), MillraceError)).code,
    "too_large",
  );
  const gone = (() => Promise.reject(new TypeError("refused"))) as unknown as typeof fetch;
  assertEquals(
    (await assertRejects(() => callAction(gone, AV, "Play", {}, signal), MillraceError)).code,
    "connection_failed",
  );
});

test("DlnaRenderer.open() offers a type that the device accepts, and gives up if it keeps reporting stopped", async () => {
  const clock = new FakeClock();
  let state = "STOPPED";
  const { asked, fetch } = fakeDevice((action) => {
    if (action === "GetProtocolInfo") {
      return soap("<Sink>http-get:*:audio/mpeg:*,http-get:*:video/vnd.dlna.mpeg-tts:*</Sink>");
    }
    return soap(
      `<CurrentTransportState>${state}</CurrentTransportState><RelTime>0:00:07</RelTime><TrackDuration>0:00:00</TrackDuration>`,
    );
  });
  const renderer = new DlnaRenderer({ clock, fetch }, {
    udn: "uuid:tv",
    name: "TV",
    icon: null,
    avTransport: AV,
    connectionManager: AV,
  });
  /** Bodies of answers are read in turns of the event loop, not of the clock. */
  const pass = async (ms: number) => {
    for (let at = 0; at < ms; at += 250) {
      for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setTimeout(resolve, 0));
      await clock.advanceAsync(250);
    }
  };
  assertEquals(renderer.facts, { id: "dlna:uuid:tv", type: "aircast", protocol: "dlna", name: "TV", icon: null });
  assertEquals(await renderer.status(signal), { state: "idle", positionSeconds: null, durationSeconds: null });
  const refused = assertRejects(() => renderer.open(new FakeStream("1"), signal), MillraceError, "TV does not play it");
  await pass(6000);
  await refused;
  const set = asked.find(({ action }) => action === "SetAVTransportURI")!;
  assertMatch(set.body, /http-get:\*:video\/vnd\.dlna\.mpeg-tts:/);
  state = "TRANSITIONING";
  const opening = renderer.open(new FakeStream("2"), signal);
  await pass(10_000);
  state = "PLAYING";
  await pass(500);
  await opening;
  assertEquals(await renderer.status(signal), { state: "playing", positionSeconds: 7, durationSeconds: null });
  state = "STOPPED";
  const error = await assertRejects(() => renderer.control({ kind: "pause" }, signal), MillraceError);
  assertEquals([error.code, clock.pendingTimers], ["conflict", 0]);
});

test("RendererFinder searches on request, renews its list in the background, and returns no outdated one", async () => {
  const clock = new FakeClock();
  let searches = 0;
  let isThere = true;
  let hear: (data: Uint8Array, from: SocketAddress) => void = () => {};
  const description = device(SERVICE("AVTransport", "/av"));
  const finder = new RendererFinder({
    clock,
    log: silent,
    fetch: (() => Promise.resolve(new Response(description))) as unknown as typeof fetch,
    network: {
      resolve: (host) => Promise.resolve([host]),
      interfaces: () => [{ name: "eth0", host: "192.168.7.5", prefixLength: 24, family: 4, loopback: false }],
    },
    udp: {
      bind: () => {
        searches++;
        return Promise.resolve({
          address: { host: "0.0.0.0", port: 5 },
          onMessage: (handler) => void (hear = handler),
          send: () => {
            if (isThere) hear(new TextEncoder().encode(answer()), { host: "192.168.7.9", port: 1900 });
            return Promise.resolve();
          },
          close: () => {},
        });
      },
    },
  });
  /** Time goes by, and bodies are read. */
  const pass = async (ms: number) => {
    await clock.advanceAsync(ms);
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setTimeout(resolve, 0));
  };
  assertEquals(searches, 0, "nobody asked");
  const first = finder.list();
  await pass(200);
  await pass(1300);
  const [renderer] = await first;
  assertEquals([renderer?.facts.name, searches], ["Wohnzimmer & Küche", 1]);
  await pass(20_000);
  assertEquals([(await finder.list())[0], searches], [renderer, 1]);
  isThere = false;
  await pass(10_000);
  assertEquals([(await finder.list())[0], searches], [renderer, 2], "at once, from the list that is being renewed");
  await pass(200);
  await pass(1300);
  assertEquals([(await finder.list()).length, searches], [0, 2]);
  isThere = true;
  await pass(60_000);
  const again = finder.list();
  await pass(200);
  await pass(1300);
  assertEquals([(await again).length, searches], [1, 3], "an old list is not given out");
  await finder.close();
});

test("RendererFinder keeps to the device that it knows when another machine claims its name", async () => {
  const clock = new FakeClock();
  let hear: (data: Uint8Array, from: SocketAddress) => void = () => {};
  let hosts = ["192.168.7.9"];
  const finder = new RendererFinder({
    clock,
    log: silent,
    fetch: (() => Promise.resolve(new Response(device(SERVICE("AVTransport", "/av"))))) as unknown as typeof fetch,
    network: { resolve: (host) => Promise.resolve([host]), interfaces: () => [address("192.168.7.5")] },
    udp: {
      bind: () =>
        Promise.resolve({
          address: { host: "0.0.0.0", port: 5 },
          onMessage: (handler) => void (hear = handler),
          send: () => {
            for (const host of hosts) {
              const text = answer({ Location: `http://${host}:49494/description.xml` });
              hear(new TextEncoder().encode(text), { host, port: 1900 });
            }
            return Promise.resolve();
          },
          close: () => {},
        }),
    },
  });
  const list = async () => {
    const listed = finder.list();
    for (const ms of [200, 1300]) {
      await clock.advanceAsync(ms);
      for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setTimeout(resolve, 0));
    }
    return (await listed).map(({ host }) => host);
  };
  assertEquals(await list(), ["192.168.7.9"]);
  hosts = ["192.168.7.66", "192.168.7.9"];
  await clock.advanceAsync(60_000);
  assertEquals(await list(), ["192.168.7.9"], "first, and with the same name");
  hosts = ["192.168.7.10"];
  await clock.advanceAsync(60_000);
  assertEquals(await list(), ["192.168.7.10"], "it has moved");
  await finder.close();
});
