/** Asking routers, which here are functions; test/interop has a real one. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import type { InterfaceAddress, SocketAddress, UdpBindOptions, UdpSocket } from "../../src/ports.ts";
import { connectionsOf, findIgds, IgdGateway } from "../../src/portmap/igd-gateway.ts";
import { type MappingState, PortMapper } from "../../src/portmap/port-mapper.ts";
import { PcpGateway, PmpGateway } from "../../src/portmap/pcp-gateway.ts";
import { seededRandom } from "../simulation/event-queue.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";

const ROUTER = "192.168.7.1";
const CLIENT = "192.168.7.5";
const TCP = { protocol: "tcp", port: 8621 } as const;
const never = new AbortController().signal;

/** A router: its answer to a datagram, null for none. */
type Router = (request: Uint8Array) => Uint8Array | null;

/** A network with one router, and the requests to it. */
function networkOf(router: Router, options: { from?: SocketAddress; fetch?: typeof fetch; hosts?: string[] } = {}) {
  const clock = new FakeClock();
  const requests: Uint8Array[] = [];
  const lines: string[] = [];
  let openSockets = 0;
  const log = { log: (_level: string, message: string) => void lines.push(message), child: () => log };
  const ports = {
    clock,
    log,
    fetch: options.fetch ?? (() => Promise.reject(new Error("nothing there"))),
    network: {
      interfaces: () =>
        (options.hosts ?? [CLIENT]).map((host): InterfaceAddress => {
          return { name: "eth0", host, prefixLength: 24, family: 4, loopback: false };
        }),
      gateways: () => Promise.resolve([ROUTER]),
      resolve: (host: string) => Promise.resolve([host]),
    },
    udp: {
      bind: (_options: UdpBindOptions): Promise<UdpSocket> => {
        let hear: (data: Uint8Array, from: SocketAddress) => void = () => {};
        openSockets++;
        return Promise.resolve({
          address: { host: CLIENT, port: 40_000 },
          onMessage: (handler) => void (hear = handler),
          send: (data, to) => {
            if (to.port !== 5351) return Promise.resolve();
            requests.push(data);
            const answer = router(data);
            if (answer !== null) queueMicrotask(() => hear(answer, options.from ?? { host: ROUTER, port: 5351 }));
            return Promise.resolve();
          },
          close: () => void openSockets--,
        });
      },
    },
  };
  return { clock, ports, requests, lines, openSockets: () => openSockets };
}

/** A router that speaks PCP and grants everything for `lifetimeS`. */
function pcpRouter(lifetimeS: number, host = [203, 0, 113, 7], externalPort?: number): Router {
  return (request) => {
    if (request[0] !== 2) return null;
    const answer = request.slice();
    const view = new DataView(answer.buffer);
    answer[1] = 0x81;
    answer.fill(0, 8, 24);
    if (view.getUint32(4) !== 0) view.setUint32(4, lifetimeS);
    if (externalPort !== undefined) view.setUint16(42, externalPort);
    answer.set(host, 56);
    return answer;
  };
}

/** A router that speaks NAT-PMP only. */
const pmpRouter: Router = (request) => {
  if (request[0] !== 0) return Uint8Array.of(0, 0x80, 0, 1, 0, 0, 0, 1);
  if (request[1] === 0) return Uint8Array.of(0, 0x80, 0, 0, 0, 0, 0, 1, 203, 0, 113, 7);
  return Uint8Array.of(0, 0x80 | request[1]!, 0, 0, 0, 0, 0, 1, ...request.subarray(4, 12));
};

/** Time passes in steps; what follows one takes some turns, which are more on some runtimes than on others. */
async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 5_000) {
    clock.advance(Math.min(left, 5_000) / 2);
    for (let i = 0; i < 5; i++) await settle();
    clock.advance(Math.min(left, 5_000) / 2);
    for (let i = 0; i < 5; i++) await settle();
  }
}

const lifetimeOf = (request: Uint8Array) => new DataView(request.buffer).getUint32(4);

test("PortMapper maps its ports by PCP, renews them after half their lifetime, and removes them at the end", async () => {
  const { clock, ports, requests, openSockets } = networkOf(pcpRouter(1000));
  const states: MappingState[] = [];
  const mapper = new PortMapper(ports, [TCP, { protocol: "udp", port: 8621 }], (state) => states.push(state));
  await mapper.start();
  const mapped = {
    kind: "mapped",
    protocol: "PCP",
    router: ROUTER,
    externalHost: "203.0.113.7",
    externalPort: 8621,
    isPublic: false,
  } as const;
  assertEquals(states, [mapped], "203.0.113.0/24 is for documentation");
  assertEquals(requests.map((request) => request[36]), [6, 17]);
  await pass(clock, 499_000);
  assertEquals(requests.length, 2);
  await pass(clock, 1_000);
  assertEquals([requests.length, states.length], [4, 1]);
  await mapper.close();
  assertEquals(requests.slice(4).map(lifetimeOf), [0, 0]);
  await pass(clock, 3_600_000);
  assertEquals([requests.length, openSockets()], [6, 0]);
});

test("PortMapper asks at most once per minute, however short the lifetimes that a router grants", async () => {
  const { clock, ports, requests } = networkOf(pcpRouter(1));
  const mapper = new PortMapper(ports, [TCP]);
  await mapper.start();
  await pass(clock, 600_000);
  assertEquals(requests.length, 11);
  await mapper.close();
});

test("PortMapper renews every quarter of an hour even for a year's life: a router that restarted has forgotten", async () => {
  const { clock, ports, requests } = networkOf(pcpRouter(31_536_000, [8, 8, 4, 4], 40_000));
  const mapper = new PortMapper(ports, [TCP]);
  await mapper.start();
  const { state } = mapper;
  assert(state.kind === "mapped");
  assertEquals([state.externalPort, state.externalHost, state.isPublic], [40_000, "8.8.4.4", true]);
  await pass(clock, 3_600_000);
  assertEquals(requests.length, 5);
  await mapper.close();
});

test("PortMapper falls back to NAT-PMP when the router speaks only that", async () => {
  const { ports, requests } = networkOf(pmpRouter);
  const mapper = new PortMapper(ports, [TCP]);
  await mapper.start();
  assert(mapper.state.kind === "mapped");
  assertEquals([mapper.state.protocol, mapper.state.externalHost], ["NAT-PMP", "203.0.113.7"]);
  await mapper.close();
  assertEquals(requests.at(-1), Uint8Array.of(0, 2, 0, 0, 0x21, 0xad, 0, 0, 0, 0, 0, 0));
});

test("PortMapper says why a router refuses, and asks again after ten minutes", async () => {
  const refuses: Router = (request) => {
    const answer = pcpRouter(0)(request);
    if (answer !== null) answer[3] = 2;
    return answer;
  };
  const { clock, ports, requests, lines } = networkOf(refuses);
  const mapper = new PortMapper(ports, [TCP]);
  const started = mapper.start();
  await pass(clock, 10_000);
  await started;
  assertEquals(mapper.state, { kind: "failed", reason: `the router ${ROUTER} maps no port: it does not allow that` });
  assertMatch(lines.join("\n"), /port mapping: .*does not allow that/);
  const before = requests.length;
  await pass(clock, 500_000);
  assertEquals(requests.length, before);
  await pass(clock, 150_000);
  assert(requests.length > before);
  const closed = mapper.close();
  await pass(clock, 5_000);
  await closed;
  assertEquals(clock.pendingTimers, 0);
});

test("PortMapper tries three protocols at a silent router, and ends its search when it is closed", async () => {
  const { clock, ports, openSockets, requests } = networkOf(() => null);
  const mapper = new PortMapper(ports, [TCP]);
  const started = mapper.start();
  await pass(clock, 10_000);
  await started;
  assertMatch((mapper.state as { reason: string }).reason, /no router speaks PCP, NAT-PMP or UPnP/);
  assertEquals(requests.map((request) => request[0]), [2, 2, 2, 0, 0, 0]);
  void mapper.start();
  await pass(clock, 100);
  await mapper.close();
  assertEquals([openSockets(), clock.pendingTimers], [0, 0]);
});

test("PortMapper asks nobody when the machine has no private network", async () => {
  const { ports, requests } = networkOf(pcpRouter(1000), { hosts: ["8.8.4.4"] });
  const mapper = new PortMapper(ports, [TCP]);
  await mapper.start();
  assertEquals([mapper.state.kind, requests.length], ["unneeded", 0]);
  await mapper.close();
});

test("PcpGateway and PmpGateway ignore answers that are not from the router", async () => {
  for (const from of [{ host: "192.168.7.66", port: 5351 }, { host: ROUTER, port: 5352 }]) {
    const { clock, ports, openSockets } = networkOf((request) => pcpRouter(1000)(request) ?? pmpRouter(request), {
      from,
    });
    for (const Gateway of [PcpGateway, PmpGateway]) {
      const asked = assertRejects(
        () => new Gateway(ports, { host: ROUTER, client: CLIENT }).map(TCP, never),
        MillraceError,
        "does not answer",
      );
      await pass(clock, 2_000);
      await asked;
    }
    assertEquals(openSockets(), 0);
  }
});

const LOCATION = new URL("http://192.168.7.1:5000/rootDesc.xml");
const described = (type: string, control = "/ctl/IPConn") =>
  `<root><device><deviceList><device><serviceList><service><serviceType>${type}</serviceType><controlURL>${control}</controlURL></service></serviceList></device></deviceList></device></root>`;

test("connectionsOf() takes connections on the router itself, and few of them", () => {
  const table: [string, number][] = [
    [described("urn:schemas-upnp-org:service:WANIPConnection:1"), 1],
    [described("urn:schemas-upnp-org:service:WANIPConnection:2"), 1],
    [described("urn:schemas-upnp-org:service:WANPPPConnection:1"), 1],
    [described("urn:schemas-upnp-org:service:WANCommonInterfaceConfig:1"), 0],
    [described("urn:schemas-upnp-org:service:WANIPConnection:1", "http://192.168.7.9/ctl"), 0],
    [described("urn:schemas-upnp-org:service:WANIPConnection:1", "file:///etc/passwd"), 0],
    [`<r>${described("urn:schemas-upnp-org:service:WANIPConnection:1").repeat(50)}</r>`, 4],
  ];
  for (const [text, count] of table) assertEquals(connectionsOf(text, LOCATION).length, count, text.slice(0, 200));
});

test("connectionsOf() returns connections or throws a protocol violation for any text", () => {
  const random = seededRandom(8);
  const good = described("urn:schemas-upnp-org:service:WANIPConnection:1");
  for (let i = 0; i < 3000; i++) {
    const letters = [...good];
    for (let n = 0; n < 4; n++) {
      letters.splice(Math.floor(random() * letters.length), 1 + Math.floor(random() * 9), "<&>"[n % 3]!);
    }
    try {
      assert(connectionsOf(letters.join(""), LOCATION).length <= 4);
    } catch (error) {
      assert(error instanceof MillraceError && error.code === "protocol_violation");
    }
  }
});

test("findIgds() asks the router that the system knows first, and few others, however many devices answer", async () => {
  const hear: ((data: Uint8Array, from: SocketAddress) => void)[] = [];
  const { clock, ports } = networkOf(() => null);
  const asked: string[] = [];
  const udp = {
    bind: (options: UdpBindOptions) =>
      ports.udp.bind(options).then((socket) => ({
        ...socket,
        onMessage: (handler: typeof hear[number]) => void hear.push(handler),
      })),
  };
  const fetcher: typeof fetch = (url) => {
    asked.push(new URL(String(url)).hostname);
    return Promise.resolve(new Response(described("urn:schemas-upnp-org:service:WANIPConnection:1", "/ctl")));
  };
  const finding = findIgds({ ...ports, udp, fetch: fetcher }, [ROUTER], never);
  while (hear.length < 2) await settle();
  const shout = (host: string, count: number) => {
    for (let n = 0; n < count; n++) {
      for (const [i, handler] of hear.entries()) {
        const target = `urn:schemas-upnp-org:device:InternetGatewayDevice:${i + 1}`;
        const text = `HTTP/1.1 200 OK\r\nST: ${target}\r\nUSN: uuid:${n}\r\nLocation: http://${host}/${n}\r\n\r\n`;
        handler(new TextEncoder().encode(text), { host, port: 1900 });
      }
    }
  };
  for (let n = 100; n < 200; n++) shout(`192.168.7.${n}`, 20);
  shout(ROUTER, 2);
  while (asked.length === 0) await pass(clock, 200);
  const gateways = await finding;
  assertEquals(asked.slice(0, 2), [ROUTER, ROUTER]);
  assertEquals([asked.length, new Set(asked).size, gateways[0]!.host], [6, 3, ROUTER]);
});

/** A router's SOAP interface that refuses with these codes, in turn, and grants the rest. */
function soapRouter(refusals: number[]) {
  const calls: { action: string; body: string }[] = [];
  const answer: typeof fetch = (_url, init) => {
    const headers = new Headers(init!.headers);
    const action = headers.get("soapaction")!.replace(/^.*#|"/g, "");
    calls.push({ action, body: String(init!.body) });
    const code = action === "AddPortMapping" ? refusals.shift() : undefined;
    return Promise.resolve(
      code === undefined
        ? new Response("<e><NewExternalIPAddress>8.8.4.4</NewExternalIPAddress></e>")
        : new Response(`<e><errorCode>${code}</errorCode><errorDescription>no</errorDescription></e>`, { status: 500 }),
    );
  };
  const service = { type: "urn:schemas-upnp-org:service:WANIPConnection:1", controlUrl: new URL("/ctl", LOCATION) };
  const igd = new IgdGateway({ fetch: answer, clock: new FakeClock() }, service, CLIENT, () => 0.5);
  return { calls, igd };
}

const valueOf = (body: string, name: string) => new RegExp(`<${name}>([^<]*)</${name}>`).exec(body)?.[1];

test("IgdGateway maps for two hours, and removes its mappings", async () => {
  const { calls, igd } = soapRouter([]);
  const mapped = await igd.map(TCP, never);
  assertEquals(mapped, { externalPort: 8621, externalHost: "8.8.4.4", lifetimeMs: 7_200_000 });
  const { body } = calls[0]!;
  assertEquals(
    ["NewExternalPort", "NewProtocol", "NewInternalPort", "NewInternalClient", "NewLeaseDuration"].map((name) =>
      valueOf(body, name)
    ),
    ["8621", "TCP", "8621", CLIENT, "7200"],
  );
  await igd.unmap(TCP, mapped, never);
  assertEquals(calls.at(-1)!.action, "DeletePortMapping");
  assertEquals(valueOf(calls.at(-1)!.body, "NewExternalPort"), "8621");
});

test("IgdGateway asks without an end where the router knows no other mappings (725)", async () => {
  const { calls, igd } = soapRouter([725]);
  assertEquals((await igd.map(TCP, never)).lifetimeMs, Infinity);
  assertEquals(calls.slice(0, 2).map(({ body }) => valueOf(body, "NewLeaseDuration")), ["7200", "0"]);
});

test("IgdGateway asks for another port, twice, when somebody has ours (718), and keeps the one it got", async () => {
  const { calls, igd } = soapRouter([718]);
  assertEquals((await igd.map(TCP, never)).externalPort, 40_000);
  assertEquals((await igd.map(TCP, never)).externalPort, 40_000);
  assertEquals(calls.filter(({ action }) => action === "AddPortMapping").length, 3);
  const full = soapRouter([718, 718, 718, 718]);
  await assertRejects(() => full.igd.map(TCP, never), MillraceError, "718");
  assertEquals(full.calls.length, 3);
});

test("IgdGateway gives up at once when the router refuses for another reason", async () => {
  const { calls, igd } = soapRouter([606]);
  await assertRejects(() => igd.map(TCP, never), MillraceError, "606");
  assertEquals(calls.length, 1);
});
