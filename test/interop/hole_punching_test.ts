/** Viewers behind two NATs of Linux, with a broadcaster in the open, each a real program in a network of its own. Needs root. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { until } from "../support/until.ts";

const run = promisify(execFile);
/** How an engine is started in each network: each of them by another runtime. */
const ENGINES: Readonly<Record<string, readonly string[]>> = {
  w: [process.execPath, "run", "-A", "--no-check", mainOf("deno")],
  h1: ["node", mainOf("node")],
  h2: ["bun", mainOf("bun")],
};
const PORT = 8621;
const HTTP_PORT = 6878;
const SOURCE = "52.9.0.1";
const HOMES = [1, 2] as const;
type Home = typeof HOMES[number];

/** Prints how many bytes of the stream have come, again and again. */
const READER = `
import sys, urllib.request
stream = urllib.request.urlopen(sys.argv[1], timeout=60)
total = 0
while True:
    data = stream.read1(65536)
    if not data: break
    total += len(data)
    print(total, flush=True)
`;
const FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())";

/** A program's output. */
interface Program {
  readonly child: ChildProcess;
  said(): string;
}

/** The world, and two homes behind routers. */
class Networks {
  readonly name = `mp${process.pid}`;
  readonly dir = mkdtempSync(path.join(tmpdir(), "millrace-punch-"));
  readonly #children: ChildProcess[] = [];
  readonly #programs: Program[] = [];
  readonly #namespaces: string[] = [];

  /** `masquerade`: how the routers translate; "masquerade" keeps ports (one per socket), "fully-random" takes one per destination. */
  async open(masquerade: "masquerade" | "masquerade fully-random"): Promise<void> {
    await this.#namespace("w");
    await this.#at("w", "ip", "link", "add", "air", "type", "bridge");
    await this.#up("w", "air", `${SOURCE}/32`);
    // Each is in a network of its own for all that they know: no neighbours.
    await this.#at("w", "ip", "route", "add", "52.9.0.0/16", "dev", "air");
    for (const home of HOMES) {
      const [router, inside] = [`r${home}`, `h${home}`];
      await this.#namespace(router);
      await this.#namespace(inside);
      await this.#link(["w", `x${home}`], [router, "wan"]);
      await this.#at("w", "ip", "link", "set", `x${home}`, "master", "air", "up");
      await this.#up(router, "wan", `52.9.${home}.1/32`);
      await this.#at(router, "ip", "route", "add", "52.9.0.0/16", "dev", "wan");
      await this.#link([router, "lan"], [inside, "eth"]);
      await this.#up(router, "lan", `192.168.${home}.1/24`);
      await this.#up(inside, "eth", `192.168.${home}.2/24`);
      await this.#at(inside, "ip", "route", "add", "default", "via", `192.168.${home}.1`);
      await this.#at(router, "sysctl", "-qw", "net.ipv4.ip_forward=1");
      await this.#rules(
        router,
        `table inet filter {
          chain forward { type filter hook forward priority 0; policy drop; iifname "lan" meta l4proto udp counter accept; iifname "lan" accept; ct state established,related accept; }
          chain input { type filter hook input priority 0; policy accept; iifname "wan" drop; }
        }
        table inet nat {
          chain postrouting { type nat hook postrouting priority 100; oifname "wan" ${masquerade}; }
        }`,
      );
    }
  }

  /** Starts a program in a network. */
  start(end: string, ...command: string[]): Program {
    const child = spawn("ip", ["netns", "exec", this.name + end, ...command], { stdio: ["pipe", "pipe", "pipe"] });
    this.#children.push(child);
    let said = "";
    for (const stream of [child.stdout!, child.stderr!]) stream.on("data", (data) => said += data);
    const program = { child, said: () => said };
    this.#programs.push(program);
    return program;
  }

  /** As `until`, with the last words of all programs in the error. */
  async until(what: string, look: () => boolean | Promise<boolean>, timeoutMs: number): Promise<void> {
    await until(what, look, timeoutMs).catch((error) => {
      throw new Error(`${error}: ${this.#programs.map(({ said }) => said().slice(-2_000)).join("\n---\n")}`);
    });
  }

  /** Starts an engine. */
  engine(end: string, ...args: string[]): Program {
    const own = ["--no-dht", "--no-lsd", "--no-port-mapping", "--peer-port", String(PORT)];
    const state = ["--state-dir", path.join(this.dir, end)];
    return this.start(end, ...ENGINES[end]!, ...args, ...own, ...state);
  }

  /** Broadcasts 1 Mbit/s from the open; returns the magnet. */
  async broadcast(): Promise<string> {
    const engine = this.engine("w", "broadcast", "--source", "-", "--name", "punch", "--json", "--bitrate", "125000");
    const picture = [
      "-f",
      "lavfi",
      "-i",
      "testsrc=size=640x360:rate=25",
      "-c:v",
      "mpeg2video",
      "-b:v",
      "800k",
      "-g",
      "12",
    ];
    const rate = ["-minrate", "800k", "-maxrate", "800k", "-bufsize", "400k", "-muxrate", "1000k", "-f", "mpegts", "-"];
    const source = spawn("ffmpeg", ["-v", "error", "-nostdin", "-re", ...picture, ...rate], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#children.push(source);
    source.stdout!.pipe(engine.child.stdin!).on("error", () => {});
    await this.until("the broadcast begins", () => engine.said().includes('"magnet"'), 40_000);
    const facts = JSON.parse(engine.said().split("\n").find((line) => line.includes('"magnet"'))!);
    return `${facts.magnet}&x.pe=${SOURCE}:${PORT}`;
  }

  /** Lets an engine at home play the broadcast. */
  async play(home: Home, magnet: string): Promise<Viewer> {
    const engine = this.engine(`h${home}`, "--http-port", String(HTTP_PORT), "--cache", "ram");
    await this.until("the engine runs", () => engine.said().includes("ready"), 40_000);
    const url = `http://127.0.0.1:${HTTP_PORT}/engine/getstream?magnet=${encodeURIComponent(magnet)}`;
    const { response } = JSON.parse(await this.#fetch(home, `${url}&format=json`));
    const reader = this.start(`h${home}`, "python3", "-c", READER, response.playback_url);
    return {
      bytes: () => Number(reader.said().trim().split("\n").at(-1) || 0),
      members: async () => {
        const stat = JSON.parse(await this.#fetch(home, `${response.stat_url}?detail=1`));
        return stat.response.members.map(({ address }: { address: string }) => address);
      },
    };
  }

  /** The world drops what the home and the broadcaster send each other by TCP. */
  async cut(home: Home): Promise<void> {
    await this.#rules(
      "w",
      `table inet cut {
        chain input { type filter hook input priority 0; ip saddr 52.9.${home}.1 meta l4proto tcp counter drop; }
      }`,
    );
  }

  /** Packets that `cut` stopped. */
  packetsCut(): Promise<number> {
    return this.#counted("w", "cut", "input");
  }

  /** Datagrams that a home sent. */
  datagrams(home: Home): Promise<number> {
    return this.#counted(`r${home}`, "filter", "forward");
  }

  async close(): Promise<void> {
    for (const child of this.#children) child.kill("SIGKILL");
    for (const namespace of this.#namespaces) await run("ip", ["netns", "del", namespace]).catch(() => {});
    rmSync(this.dir, { recursive: true, force: true });
  }

  async #counted(end: string, table: string, chain: string): Promise<number> {
    const rules = await this.#at(end, "nft", "list", "chain", "inet", table, chain);
    return Number(/counter packets (\d+)/.exec(rules)![1]);
  }

  #fetch(home: Home, url: string): Promise<string> {
    return this.#at(`h${home}`, "python3", "-c", FETCH, url);
  }

  async #at(end: string, ...command: string[]): Promise<string> {
    return (await run("ip", ["netns", "exec", this.name + end, ...command])).stdout;
  }

  async #namespace(end: string): Promise<void> {
    await run("ip", ["netns", "add", this.name + end]);
    this.#namespaces.push(this.name + end);
    await this.#at(end, "ip", "link", "set", "lo", "up");
  }

  async #link([one, ownName]: [string, string], [other, otherName]: [string, string]): Promise<void> {
    const far = ["peer", "name", otherName, "netns", this.name + other];
    await this.#at(one, "ip", "link", "add", ownName, "type", "veth", ...far);
  }

  async #up(end: string, link: string, address: string): Promise<void> {
    await this.#at(end, "ip", "address", "add", address, "dev", link);
    await this.#at(end, "ip", "link", "set", link, "up");
  }

  async #rules(end: string, text: string): Promise<void> {
    const file = path.join(this.dir, `${end}.nft`);
    writeFileSync(file, text);
    await this.#at(end, "nft", "-f", file);
  }
}

/** A player at a home. */
interface Viewer {
  /** Bytes of the stream that it has played. */
  bytes(): number;
  /** Where its engine is connected to. */
  members(): Promise<string[]>;
}

/** Bytes of five seconds: more than a player has ahead. */
const MORE = 5 * 125_000;

test("two viewers behind NATs that keep a socket's port find each other, and one feeds the other when the broadcaster is out of its reach", async () => {
  const networks = new Networks();
  try {
    await networks.open("masquerade");
    const magnet = await networks.broadcast();
    const one = await networks.play(1, magnet);
    const other = await networks.play(2, magnet);
    const isPlaying = () => one.bytes() > 0 && other.bytes() > 0;
    await networks.until("both play", isPlaying, 40_000);
    await until(
      "they are connected",
      async () => (await other.members()).some((at) => at.includes("52.9.1.1")),
      20_000,
    );
    await networks.cut(2);
    const before = other.bytes();
    await networks.until("it plays on", () => other.bytes() - before > MORE, 40_000);
    assert(await networks.packetsCut() > 0, "it tried to reach the broadcaster");
  } finally {
    await networks.close();
  }
});

test("viewers behind NATs with a port for each destination try in vain, and play on from the broadcaster", async () => {
  const networks = new Networks();
  try {
    await networks.open("masquerade fully-random");
    const magnet = await networks.broadcast();
    const viewers = [await networks.play(1, magnet), await networks.play(2, magnet)];
    // Three datagrams at most show the address to the broadcaster, eight go to the other home.
    await networks.until("they tried", async () => await networks.datagrams(2) >= 8 + 1, 40_000);
    const before = viewers.map((viewer) => viewer.bytes());
    await networks.until(
      "both play on",
      () => viewers.every((viewer, i) => viewer.bytes() - before[i]! > MORE),
      40_000,
    );
    for (const viewer of viewers) assertEquals(await viewer.members(), [`${SOURCE}:${PORT}`]);
    assert(await networks.datagrams(2) <= 8 + 3, "they try once");
  } finally {
    await networks.close();
  }
});

function mainOf(runtime: string): string {
  return fileURLToPath(new URL(`../../platform/${runtime}/main.ts`, import.meta.url));
}
