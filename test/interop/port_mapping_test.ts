/** Port mapping at a real router, miniupnpd over nftables, between two networks of this machine. Needs root. */
import { test } from "node:test";
import { assert, assertMatch } from "@std/assert";
import { execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { until } from "../support/until.ts";

const run = promisify(execFile);
const MAIN = fileURLToPath(new URL("../../platform/deno/main.ts", import.meta.url));
/** Public for the router's program, which maps nothing from networks for documentation; nothing is sent there. */
const OUTSIDE = "52.9.0.1";
const WORLD = "52.9.0.2";
const PORT = 8621;
/** Of a network that belongs to a provider: to the engine, addresses for documentation are not public. */
const HOME6 = "2a02:26f7:77::2";
const WORLD6 = "2a02:26f7:88::2";

/** A home, its router, and the world, each a network namespace. */
class Networks {
  readonly name = `mr${process.pid}`;
  readonly dir = mkdtempSync(path.join(tmpdir(), "millrace-router-"));
  readonly #children: { kill(): unknown }[] = [];

  async open(): Promise<void> {
    const [home, router, world] = ["h", "r", "w"].map((end) => this.name + end);
    const inside = (namespace: string, ...args: string[]) => this.#ip("-n", namespace, ...args);
    for (const namespace of [home!, router!, world!]) {
      await this.#ip("netns", "add", namespace);
      await inside(namespace, "link", "set", "lo", "up");
    }
    for (
      const [other, near, far] of [[home!, "192.168.77.2/24", "192.168.77.1/24"], [
        world!,
        `${WORLD}/24`,
        `${OUTSIDE}/24`,
      ]]
    ) {
      await this.#ip("link", "add", other!, "type", "veth", "peer", "name", `${other}r`);
      await this.#ip("link", "set", other!, "netns", other!);
      await this.#ip("link", "set", `${other}r`, "netns", router!);
      for (const [namespace, link, address] of [[other!, other!, near!], [router!, `${other}r`, far!]]) {
        await inside(namespace!, "addr", "add", address!, "dev", link!);
        await inside(namespace!, "link", "set", link!, "up");
      }
    }
    await inside(home!, "route", "add", "default", "via", "192.168.77.1");
    await this.at("r", "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1");
    for (const [other, host] of [[home!, HOME6], [world!, WORLD6]] as const) {
      await inside(other, "addr", "add", `${host}/64`, "dev", other, "nodad");
      await inside(router!, "addr", "add", `${host.replace(/2$/, "1")}/64`, "dev", `${other}r`, "nodad");
      await inside(router!, "addr", "add", "fe80::1/64", "dev", `${other}r`, "nodad");
      await inside(other, "-6", "route", "add", "default", "via", "fe80::1", "dev", other);
    }
    const rules = path.join(this.dir, "rules.nft");
    writeFileSync(
      rules,
      `table inet filter {
        chain forward { type filter hook forward priority 0; policy drop; iifname "${home}r" accept; ct state established,related accept; jump miniupnpd; }
        chain miniupnpd { }
        chain input { type filter hook input priority 0; }
      }
      table inet nat {
        chain maps { }
        chain after { }
        chain prerouting { type nat hook prerouting priority -100; jump maps; }
        chain postrouting { type nat hook postrouting priority 100; jump after; oifname "${world}r" masquerade; }
      }`,
    );
    await this.at("r", "nft", "-f", rules);
  }

  /** Starts the router's program with these protocols. */
  async router(protocols: { natPmp: boolean; upnp: boolean; ipv6?: boolean }): Promise<{ stop(): void }> {
    const config = path.join(this.dir, "miniupnpd.conf");
    const yes = (value: boolean) => value ? "yes" : "no";
    writeFileSync(
      config,
      [
        `ext_ifname=${this.name}wr`,
        `listening_ip=${this.name}hr`,
        `enable_natpmp=${yes(protocols.natPmp)}`,
        `enable_upnp=${yes(protocols.upnp)}`,
        "secure_mode=yes",
        "upnp_table_name=filter",
        "upnp_nat_table_name=nat",
        "upnp_forward_chain=miniupnpd",
        "upnp_nat_chain=maps",
        "upnp_nat_postrouting_chain=after",
        "uuid=00000000-0000-4000-8000-000000000001",
        "allow 1024-65535 192.168.77.0/24 1024-65535",
        "deny 0-65535 0.0.0.0/0 0-65535",
        "",
      ].join("\n"),
    );
    const pid = path.join(this.dir, "miniupnpd.pid");
    const child = spawn("ip", [
      ...["netns", "exec", `${this.name}r`, "miniupnpd", "-d", ...(protocols.ipv6 ? [] : ["-4"])],
      ...["-f", config, "-P", pid],
    ], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => said += data);
    this.#children.push(child);
    const isReady = () => said.includes(protocols.natPmp ? "traffic on port 5351" : "HTTP listening on port");
    await until(`miniupnpd runs: ${said}`, isReady);
    return { stop: () => void child.kill() };
  }

  /** Runs a program at home ("h"), at the router ("r") or in the world ("w"). */
  async at(end: "h" | "r" | "w", ...command: string[]): Promise<string> {
    return await this.#ip("netns", "exec", this.name + end, ...command);
  }

  /** An engine at home. */
  engine(): { said(): string; ended: Promise<unknown>; end(): void } {
    const args = ["run", "-A", "--no-check", MAIN, "--no-dht", "--no-lsd", "--http-port", "0", "--cache", "ram"];
    const state = path.join(this.dir, "state");
    const child = spawn("ip", ["netns", "exec", `${this.name}h`, process.execPath, ...args, "--state-dir", state], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#children.push(child);
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => said += data);
    const ended = new Promise((resolve) => child.on("exit", resolve));
    return { said: () => said, ended, end: () => void child.kill("SIGTERM") };
  }

  async close(): Promise<void> {
    for (const child of this.#children) child.kill();
    for (const end of ["h", "r", "w"]) await this.#ip("netns", "del", this.name + end).catch(() => {});
    rmSync(this.dir, { recursive: true, force: true });
  }

  async #ip(...args: string[]): Promise<string> {
    return (await run("ip", args)).stdout;
  }
}

/** Connects from the world to the port outside; exits with 0 when that works. */
const KNOCK = ["bash", "-c", `timeout 2 bash -c '</dev/tcp/${OUTSIDE}/${PORT}'`];

const CASES = [
  { protocol: "PCP", natPmp: true, upnp: false },
  { protocol: "UPnP", natPmp: false, upnp: true },
] as const;

test("an engine behind a router is reached from outside by PCP and by UPnP, and gives the port back", async () => {
  const networks = new Networks();
  try {
    await networks.open();
    for (const { protocol, ...enabled } of CASES) {
      const router = await networks.router(enabled);
      const engine = networks.engine();
      await until(`the port is mapped: ${engine.said()}`, () => engine.said().includes("port mapping: "), 40_000);
      assertMatch(engine.said(), new RegExp(`passes port ${PORT} of ${OUTSIDE} on to us \\(${protocol}\\)`));
      await networks.at("w", ...KNOCK);
      engine.end();
      await engine.ended;
      const rules = await networks.at("r", "nft", "list", "ruleset");
      assert(!rules.includes(String(PORT)), rules);
      assert(await networks.at("w", ...KNOCK).then(() => false, () => true), "nobody gets in any more");
      router.stop();
    }
  } finally {
    await networks.close();
  }
});

for (const { protocol, ...enabled } of CASES) {
  test(`an engine is reached at its IPv6 address through a firewall that ${protocol} opens, and closes it again`, async () => {
    const networks = new Networks();
    const knock = ["bash", "-c", `timeout 2 bash -c '</dev/tcp/${HOME6}/${PORT}'`];
    const rules = () => networks.at("r", "nft", "list", "chain", "inet", "filter", "miniupnpd");
    const isOpen = async () => (await rules()).includes(String(PORT));
    try {
      await networks.open();
      // Whatever it is told, the program answers PCP over IPv6.
      if (!enabled.natPmp) await networks.at("r", "nft", "add rule inet filter input udp dport 5351 drop");
      await networks.router({ ...enabled, ipv6: true });
      assert(!await isOpen());
      const engine = networks.engine();
      await until(`the firewall is open: ${engine.said()}`, () => engine.said().includes("IPv6 firewall: "), 40_000);
      assertMatch(engine.said(), new RegExp(`lets peers in to ${HOME6} \\(${protocol}\\)`));
      assert(await isOpen(), await rules());
      await networks.at("w", ...knock);
      engine.end();
      await engine.ended;
      assert(!await isOpen(), "nobody gets in any more");
    } finally {
      await networks.close();
    }
  });
}
