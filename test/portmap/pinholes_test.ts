/** Opening an IPv6 firewall that here is a function; test/interop has a real one. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import type { InterfaceAddress, SocketAddress, UdpBindOptions, UdpSocket } from "../../src/ports.ts";
import { Pinholes } from "../../src/portmap/pinholes.ts";
import { FakeClock, settle } from "../support/fake-clock.ts";

const ROUTER = "fe80::1%eth0";
const TCP = { protocol: "tcp", port: 8621 } as const;
const UDP = { protocol: "udp", port: 8621 } as const;

/** The router as UPnP finds it. */
const IGD = "2a02:26f7:77::1";
const FIREWALL = "urn:schemas-upnp-org:service:WANIPv6FirewallControl:1";

/**
 * A machine with the addresses `hosts` of eth0; `answer` is what the router says to a request by PCP, null for nothing; `upnp`
 * what it says to a call by UPnP, for which it can be found if there is one.
 */
function machine(
  hosts: string[],
  answer: (request: Uint8Array) => Uint8Array | null,
  router: string[] = [ROUTER],
  upnp: ((action: string, body: string) => Response) | null = null,
) {
  const clock = new FakeClock();
  const asked: { from: string; protocol: number; lifetimeS: number }[] = [];
  const log = { log: () => {}, child: () => log };
  const ports = {
    clock,
    log,
    fetch: (async (url: URL, init: RequestInit) => {
      await settle();
      if (upnp === null || url.host !== `[${IGD}]:37221`) throw new Error("nothing there");
      if (init.method !== "POST") {
        return new Response(
          `<root><device><serviceList><service><serviceType>${FIREWALL}</serviceType><controlURL>/fw</controlURL></service></serviceList></device></root>`,
        );
      }
      const headers = new Headers(init.headers);
      return upnp(headers.get("soapaction")!.replace(/^.*#|"$/g, ""), String(init.body));
    }) as unknown as typeof fetch,
    network: {
      resolve: (host: string) => Promise.resolve([host]),
      interfaces: () =>
        hosts.map((host): InterfaceAddress => {
          return { name: "eth0", host, prefixLength: 64, family: host.includes(":") ? 6 : 4, loopback: false };
        }),
      gateways: (family: 4 | 6) => Promise.resolve(family === 6 ? router : []),
    },
    udp: {
      bind: ({ host }: UdpBindOptions): Promise<UdpSocket> => {
        let hear: (data: Uint8Array, from: SocketAddress) => void = () => {};
        return Promise.resolve({
          address: { host: host!, port: 40_000 },
          onMessage: (handler) => void (hear = handler),
          send: (data, to) => {
            if (to.port === 1900) {
              const found =
                `HTTP/1.1 200 OK\r\nST: ${FIREWALL}\r\nUSN: uuid:1\r\nLOCATION: http://[${IGD}]:37221/root.xml\r\n\r\n`;
              if (upnp !== null) queueMicrotask(() => hear(new TextEncoder().encode(found), { host: IGD, port: 1900 }));
              return Promise.resolve();
            }
            asked.push({ from: host!, protocol: data[36]!, lifetimeS: new DataView(data.buffer).getUint32(4) });
            const said = answer(data);
            // From another address of the router.
            if (said !== null) queueMicrotask(() => hear(said, { host: "2a02:26f7:77::1", port: 5351 }));
            return Promise.resolve();
          },
          close: () => {},
        });
      },
    },
  };
  return { clock, ports, hosts, asked };
}

function agree(request: Uint8Array): Uint8Array {
  const answer = request.slice();
  answer[1] = 0x81;
  answer.copyWithin(44, 8, 24);
  answer.fill(0, 8, 24);
  const view = new DataView(answer.buffer);
  if (view.getUint32(4) !== 0) view.setUint32(4, 1000);
  return answer;
}

/** As `agree`, with another nonce: what somebody says who has not seen the request. */
function pretend(request: Uint8Array): Uint8Array {
  const answer = agree(request);
  answer[24]! ^= 1;
  return answer;
}

/** Responses by HTTP take more turns than datagrams, so that their deadlines need smaller steps. */
async function pass(clock: FakeClock, ms: number, stepMs = 1000): Promise<void> {
  for (let left = ms; left > 0; left -= stepMs) {
    clock.advance(Math.min(left, stepMs));
    for (let i = 0; i < 10; i++) await settle();
  }
}

test("Pinholes opens its ports at each public address, renews them, follows changes and closes them at the end", async () => {
  const { clock, ports, hosts, asked } = machine(["192.168.7.5", "fe80::5", "fd00::5", "2a02:26f7:77::2"], agree);
  const pinholes = new Pinholes(ports, [TCP, UDP], null);
  await pinholes.start();
  assertEquals(pinholes.state, { kind: "open", protocol: "PCP", router: ROUTER, hosts: ["2a02:26f7:77::2"] });
  assertEquals(asked, [6, 17].map((protocol) => ({ from: "2a02:26f7:77::2", protocol, lifetimeS: 7200 })));
  hosts.splice(3, 1, "2a02:26f7:77::3");
  await pass(clock, 500_000);
  assertEquals(pinholes.state, { kind: "open", protocol: "PCP", router: ROUTER, hosts: ["2a02:26f7:77::3"] });
  assertEquals(asked.length, 4);
  await pinholes.close();
  assertEquals(asked.slice(4).map(({ from, lifetimeS }) => [from, lifetimeS]), [["2a02:26f7:77::3", 0], [
    "2a02:26f7:77::3",
    0,
  ]]);
  await pass(clock, 3_600_000);
  assertEquals(asked.length, 6);
});

test("Pinholes asks for nothing when there is no public address, or no router", async () => {
  for (
    const [own, router] of [[["fe80::5", "fd00::5"], [ROUTER]], [["2a02:26f7:77::2"], []], [["2a02:26f7:77::2"], [
      "fe80::1%eth1",
    ]]]
  ) {
    const { clock, ports, asked } = machine(own!, agree, router);
    const pinholes = new Pinholes(ports, [TCP], null);
    const started = pinholes.start();
    await pass(clock, 10_000);
    await started;
    assertEquals([pinholes.state, asked.length], [{ kind: "unneeded" }, 0]);
    await pinholes.close();
  }
});

test("Pinholes asks for the one address at which the engine listens", async () => {
  const { ports } = machine(["2a02:26f7:77::2", "2a02:26f7:77::3"], agree);
  const pinholes = new Pinholes(ports, [TCP], "2a02:26f7:77::3");
  await pinholes.start();
  assertEquals(pinholes.state, { kind: "open", protocol: "PCP", router: ROUTER, hosts: ["2a02:26f7:77::3"] });
  await pinholes.close();
});

test("Pinholes believes nobody who does not know what it asked, and asks a silent router again after ten minutes", async () => {
  const { clock, ports, asked } = machine(["2a02:26f7:77::2"], pretend);
  const pinholes = new Pinholes(ports, [TCP], null);
  const started = pinholes.start();
  await pass(clock, 30_000);
  await started;
  assertEquals(pinholes.state, { kind: "failed", reason: `the router ${ROUTER} speaks neither PCP nor UPnP for IPv6` });
  assertEquals(asked.length, 3);
  await pass(clock, 600_000);
  assertEquals(asked.length, 6);
  await pinholes.close();
});

const said = (text: string, status = 200) =>
  new Response(`<Envelope><Body>${text}</Body></Envelope>`, { status, headers: { "content-type": "text/xml" } });
const refusal = (code: number, reason: string) =>
  said(`<UPnPError><errorCode>${code}</errorCode><errorDescription>${reason}</errorDescription></UPnPError>`, 500);
const argument = (body: string, name: string) => body.match(new RegExp(`<${name}>([^<]*)</${name}>`))?.[1];

test("Pinholes opens by UPnP where nobody speaks PCP, at the address that the router takes, and closes it by its number", async () => {
  const called: string[] = [];
  const { clock, ports } = machine(["2a02:26f7:77::3", "2a02:26f7:77::2"], () => null, [ROUTER], (action, body) => {
    const named = ["InternalClient", "Protocol", "LeaseTime", "UniqueID"].map((name) => argument(body, name) ?? "");
    called.push([action, ...named].filter((part) => part !== "").join(" "));
    if (named[0] === "2a02:26f7:77::3") return refusal(606, "not yours");
    return said(`<UniqueID>${named[1] === "6" ? 7 : 8}</UniqueID>`);
  });
  const pinholes = new Pinholes(ports, [TCP, UDP], null);
  const started = pinholes.start();
  await pass(clock, 15_000, 50);
  await started;
  assertEquals(pinholes.state, { kind: "open", protocol: "UPnP", router: IGD, hosts: ["2a02:26f7:77::2"] });
  const added = ["AddPinhole 2a02:26f7:77::2 6 7200", "AddPinhole 2a02:26f7:77::2 17 7200"];
  assertEquals(called.splice(0), ["AddPinhole 2a02:26f7:77::3 6 7200", ...added]);
  // Renewed after a quarter of an hour, without a new search for the one that works.
  await pass(clock, 14 * 60_000);
  await pass(clock, 60_000, 50);
  assertEquals(called.splice(0).filter((call) => !call.includes("::3")), added);
  await pinholes.close();
  assertEquals(called, ["DeletePinhole 7", "DeletePinhole 8"]);
});

test("Pinholes says why a firewall refuses by UPnP, and needs to know no router for it", async () => {
  const { clock, ports } = machine(["2a02:26f7:77::2"], () => null, [], () => refusal(703, "InboundPinholeNotAllowed"));
  const pinholes = new Pinholes(ports, [TCP], null);
  const started = pinholes.start();
  await pass(clock, 15_000, 50);
  await started;
  assertEquals(pinholes.state, {
    kind: "failed",
    reason: "the device refuses AddPinhole: InboundPinholeNotAllowed (703)",
  });
  await pinholes.close();
});
