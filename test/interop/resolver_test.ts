/** Our lookups find what the system's find, in the same order, in networks of the test's own. */
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { commandOf } from "../../scripts/support/runtimes.ts";
import { temporaryDirectory } from "../support/engine.ts";
import { run } from "../support/process.ts";

const LOOKUPS = fileURLToPath(new URL("./support/lookups.ts", import.meta.url));
const RUNTIMES = { deno: ["run", "-A", "--no-check"], node: [], bun: [] } as const;
/** Bare, in a folder of the search domain, of mDNS, of both families, of one, through another name, in the hosts file, unknown. */
const NAMES = [
  "nas",
  "box.office",
  "tv.local",
  "TV.Local",
  "two.test",
  "Two.Test.",
  "four.test",
  "six.test",
  "alias.test",
  "listed",
  "listed6.test",
  "localhost",
  "nothing.test",
  "nothing",
];

for (const hasIpv6 of [false, true]) {
  test(`createResolver() agrees with getaddrinfo about search domains, .local and families, ${hasIpv6 ? "with" : "without"} IPv6`, async () => {
    const directory = await temporaryDirectory();
    try {
      const [servers, hosts, modules] = ["resolv.conf", "hosts", "nsswitch.conf"].map((name) =>
        `${directory.path}/${name}`
      );
      await writeFile(servers!, "nameserver 127.0.0.1\nsearch lan.test\n");
      await writeFile(
        hosts!,
        "127.0.0.1 localhost\n192.0.2.44 listed\n2001:db8::45 listed6.test\n192.0.2.45 listed6.test\n",
      );
      await writeFile(modules!, "hosts: files dns\n");
      const network = [
        `mount --bind ${servers} /etc/resolv.conf`,
        `mount --bind ${hosts} /etc/hosts`,
        `mount --bind ${modules} /etc/nsswitch.conf`,
        "ip link set lo up",
        ...hasIpv6 ? ["ip -6 address add 2001:db8:1::1/64 dev lo", "ip -6 route add default dev lo"] : [],
        "ip address add 192.0.2.1/24 dev lo",
        'exec "$@"',
      ].join(" && ");
      await Promise.all(
        Object.entries(RUNTIMES).map(async ([runtime, flags]) => {
          const [command, ...first] = commandOf(runtime as keyof typeof RUNTIMES);
          const program = [command!, ...first, ...flags, LOOKUPS, ...NAMES];
          const inside = ["-n", "-m", "sh", "-c", network, "sh", ...program];
          const { code, text, stderr } = await run("unshare", inside, { timeoutMs: 120_000 });
          assertEquals(code, 0, `${runtime}: ${stderr}`);
          const { own, system } = JSON.parse(text) as Record<"own" | "system", Record<string, string[]>>;
          assertEquals(own, system, runtime);
          assertEquals(own["nas"], ["192.0.2.7"], runtime);
          assertEquals(own["two.test"]![0], hasIpv6 ? "2001:db8::10" : "192.0.2.10", runtime);
        }),
      );
    } finally {
      await directory.remove();
    }
  });
}
