/**
 * Counts the packets that an engine sends beside its proxy or its interface, in a network of its own: `unshare -n -m deno run -A
 * leaks.ts DIRECTORY`. The engine is here, everything else in a second network, behind two cards: `lan0`, which has the proxy, and
 * `vpn0`, to which the default route leads while it is there. Exits with 0 when nothing went beside.
 */
import { execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { assert, assertEquals } from "@std/assert";
import type { EngineOptions } from "../../../src/engine.ts";
import { noise } from "../../support/random.ts";
import { type ServedEngine, serveEngine } from "../../support/engine.ts";
import { until } from "../../support/until.ts";
import { ask, bytesOf, startSession, statOf } from "../../loopback/support.ts";
import { PORTS } from "./leaks-ports.ts";

const [directory = ""] = process.argv.slice(2);
/** Where the world's servers are, and what routes lead to it. */
const WORLD = "23.1.2.3";
const PROXY = { host: "10.8.1.2", port: 1080 };
/** How long an engine that finds nothing is watched, ms. */
const WATCHED_MS = 3000;

const sh = (command: string) =>
  execFileSync("sh", ["-ec", command], { stdio: ["ignore", "pipe", "inherit"] }).toString();
const children: { kill(): void }[] = [];
const run = (command: string, args: readonly string[]) => {
  const child = spawn(command, args, { stdio: ["ignore", "ignore", "inherit"] });
  children.push({ kill: () => child.kill("SIGKILL") });
  return child;
};

// The second network, which lives as long as this process of it.
const holder = run("unshare", ["-n", "sleep", "600"]);
await until("the second network", () => sh(`readlink /proc/${holder.pid}/ns/net`) !== sh("readlink /proc/self/ns/net"));
const there = `nsenter -t ${holder.pid} -n`;
// Address and route in one go: until the route is there, the other card has the only one.
const connectVpn = () =>
  sh(`ip link add vpn0 type veth peer name vpn1 netns ${holder.pid}
    ${there} ip address add 10.8.2.2/24 dev vpn1; ${there} ip link set vpn1 up; ip link set vpn0 up
    printf 'address add 10.8.2.1/24 dev vpn0\\nroute add default via 10.8.2.2 dev vpn0 metric 10\\n' | ip -batch -`);
sh(`sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
  ip link set lo up; ip link add lan0 type veth peer name lan1 netns ${holder.pid}
  ip address add 10.8.1.1/24 dev lan0; ip link set lan0 up
  ip route add default via 10.8.1.2 dev lan0 metric 100
  ${there} ip link set lo up; ${there} ip address add ${WORLD}/32 dev lo
  ${there} ip address add 10.8.1.2/24 dev lan1; ${there} ip link set lan1 up`);

/** Counts what leaves and is not `allowed`. */
function count(allowed: readonly string[]): () => string[] {
  sh(`nft -f - <<'RULES'
table inet leak
delete table inet leak
table inet leak {
  set seen { type ipv4_addr . inet_proto . inet_service; flags dynamic; }
  chain out {
    type filter hook output priority 0;
    oifname "lo" accept
    ${allowed.map((rule) => `${rule} accept`).join("\n    ")}
    meta l4proto { tcp, udp } add @seen { ip daddr . meta l4proto . th dport }
    meta l4proto igmp accept
    meta l4proto != { tcp, udp } add @seen { ip daddr . meta l4proto . 0 }
  }
}
RULES`);
  return () => [...sh("nft list set inet leak seen").matchAll(/[\d.]+ \. \w+ \. \d+/g)].map(([packet]) => packet);
}

/** The resolver of Deno, on which this runs, takes no address: a query that is under way goes on by another way. */
const isNoQuery = (packet: string) => !packet.endsWith(" . udp . 53");

const facts = `${directory}/world.json`;
const script = fileURLToPath(new URL("./leaks-world.ts", import.meta.url));
run("nsenter", ["-t", String(holder.pid), "-n", process.execPath, "run", "-A", "--no-check", script, WORLD, facts]);
await until("the world", () => existsSync(facts) && readFileSync(facts, "utf8").endsWith("}"), 60_000);
const { infohash, other, port } = JSON.parse(readFileSync(facts, "utf8"));

/** Packets by what they are for, `address . protocol . port`. */
const at = (protocol: "tcp" | "udp", to: number) => `${WORLD} . ${protocol} . ${to}`;
const KINDS: Readonly<Record<string, string>> = {
  "name queries": at("udp", 53),
  "peers over TCP": at("tcp", port),
  "peers over uTP": at("udp", port),
  "peers that peers name": at("tcp", PORTS.pexPeer),
  "HTTP trackers": at("tcp", PORTS.tracker),
  "HTTPS trackers": at("tcp", PORTS.secureTracker),
  "UDP trackers": at("udp", PORTS.udpTracker),
  "trackers of web browsers": at("tcp", PORTS.pageTracker),
  "web seeds": at("tcp", PORTS.webSeed),
  "transport files": at("tcp", PORTS.files),
  "lists": at("tcp", PORTS.lists),
  "channels": at("tcp", PORTS.channel),
  "the DHT": at("udp", PORTS.dht),
  "a broadcast's tracker": at("tcp", PORTS.liveTracker),
  "a broadcast's peers": at("tcp", PORTS.livePeer),
  "local peer discovery": "239.192.152.143 . udp . 6771",
  "port mapping": "239.255.255.250 . udp . 1900",
};

/** A magnet that names servers of every kind, by name and by address. */
const magnetOf = (hash: string) =>
  [
    `magnet:?xt=urn:btih:${hash}`,
    ...[`${WORLD}:${port}`, `peer.test:${port}`, `${WORLD}:${PORTS.teller}`].map((peer) => `x.pe=${peer}`),
    ...[
      "http://tracker.test/announce",
      `http://${WORLD}/announce`,
      `https://${WORLD}/announce`,
      `ws://${WORLD}:${PORTS.pageTracker}/`,
    ].map((url) => `tr=${encodeURIComponent(url)}`),
    ...["tracker.test", WORLD].map((host) => `tr=${encodeURIComponent(`udp://${host}:${PORTS.udpTracker}`)}`),
    `xs=${encodeURIComponent(`http://files.test:${PORTS.files}/noise.torrent`)}`,
  ].join("&");

const ALL: EngineOptions = {
  peerHost: "0.0.0.0",
  dht: true,
  dhtBootstrap: [`${WORLD}:${PORTS.dht}`, `dht.test:${PORTS.dht}`],
  lsd: true,
  utp: true,
  portMapping: true,
  startTimeoutMs: 60_000,
};

let tried = 0;

/** Starts what finds nobody, and fetches what callers name, until `enough`: by default for a while. */
async function tryAll(engine: ServedEngine, enough?: () => Promise<void>): Promise<void> {
  // No two are the same: what was fetched once is kept.
  const file = (name: string) => `http://files.test:${PORTS.files}/${name}.torrent?${tried++}`;
  const tries = [
    ask(engine, "getfile", { magnet: magnetOf(other) }),
    ask(engine, "getfile", { url: file("film") }),
    ask(engine, "getfile", { url: `http://${WORLD}:${PORTS.lists}/list.m3u?${tried++}` }),
    ask(engine, "getstream", { url: file("live") }),
    ask(engine, "getstream", { url: `http://${WORLD}:${PORTS.channel}/channel.ts?${tried++}` }),
  ];
  const all = Promise.allSettled(tries);
  if (enough !== undefined) return await enough();
  await Promise.race([all, new Promise((resolve) => setTimeout(resolve, WATCHED_MS))]);
}

async function withEngine(options: EngineOptions, body: (engine: ServedEngine) => Promise<void>): Promise<void> {
  const engine = await serveEngine({ ...ALL, ...options });
  try {
    await body(engine);
  } finally {
    await engine.close();
  }
}

async function plays(engine: ServedEngine): Promise<void> {
  const started = await startSession(engine, "getfile", { magnet: magnetOf(infohash) });
  assertEquals(await bytesOf(started.playback_url), noise(3_000_000, 7));
}

/** A dante in the second network, which takes or refuses everything. */
async function startProxy(verdict: "pass" | "block"): Promise<{ stop(): Promise<void> }> {
  const file = `${directory}/${verdict}.conf`;
  writeFileSync(
    file,
    `internal: ${PROXY.host} port = ${PROXY.port}\nexternal: ${WORLD}\nclientmethod: none\nsocksmethod: none\nuser.unprivileged: nobody\n` +
      `client pass { from: 0/0 to: 0/0 }\nsocks ${verdict} { from: 0/0 to: 0/0 }\n`,
  );
  const child = run("nsenter", ["-t", String(holder.pid), "-n", "danted", "-f", file]);
  await until("danted listens", () => sh(`${there} ss -Hltn 'sport = :${PROXY.port}'`).trim() !== "");
  return {
    async stop() {
      child.kill("SIGTERM");
      await until("danted is gone", () => sh(`${there} ss -Hltn 'sport = :${PROXY.port}'`).trim() === "");
    },
  };
}

const report = (what: string, packets: readonly string[]) => {
  console.log(`${what}: ${packets.length === 0 ? "nothing beside" : packets.join(", ")}`);
  assertEquals(packets, [], what);
};

try {
  const proxied = count([`ip daddr ${PROXY.host} tcp dport ${PROXY.port}`, `ip daddr ${PROXY.host} udp sport != 53`]);
  const options = { proxy: `socks5://${PROXY.host}:${PROXY.port}` };
  const passing = await startProxy("pass");
  await withEngine(options, async (engine) => {
    await plays(engine);
    await tryAll(engine);
    report("the proxy is there", proxied());
    await passing.stop();
    await tryAll(engine);
    report("the proxy is gone", proxied());
    const refusing = await startProxy("block");
    await tryAll(engine);
    report("the proxy refuses", proxied());
    await refusing.stop();
  });
  report("the engine ended", proxied());

  connectVpn();
  // The kernel still ends connections of the engine before.
  const bound = count(['oifname "vpn0"', `ip daddr ${PROXY.host} tcp dport ${PROXY.port} tcp flags & syn == 0`]);
  await withEngine({ interface: "vpn0" }, async (engine) => {
    const started = await startSession(engine, "getfile", { magnet: magnetOf(infohash) });
    const reading = bytesOf(started.playback_url);
    reading.catch(() => {});
    await until("some of it is here", async () => Number((await statOf(started))["downloaded"]) > 300_000);
    sh("ip link delete vpn0");
    await until(
      "it says so",
      async () => (await statOf(started) as { interface: { trouble: unknown } }).interface.trouble !== null,
    );
    await tryAll(engine);
    report("the interface is away", bound().filter(isNoQuery));
    connectVpn();
    assertEquals(await reading, noise(3_000_000, 7));
    await tryAll(engine);
    report("the interface is back", bound().filter(isNoQuery));
  });
  report("the engine ended", bound().filter(isNoQuery));

  // Last, because the kernel ends its connections later: without a chosen way the same engine sends all of it.
  const free = count([]);
  const unseen = () => {
    const packets = new Set(free());
    return Object.entries(KINDS).filter(([, packet]) => !packets.has(packet)).map(([kind]) => kind);
  };
  await withEngine(
    {},
    (engine) => tryAll(engine, () => until(`without a proxy all is sent`, () => unseen().length === 0, 30_000)),
  )
    .catch((error) => assert(false, `${error}; not seen: ${unseen().join(", ")}; ${free().join(", ")}`));
  console.log(`without a proxy: ${free().join(", ")}`);
} finally {
  for (const child of children.reverse()) child.kill();
}
process.exit(0);
