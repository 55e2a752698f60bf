/** Real clients over IPv4, IPv6 and both, in networks of their own. Needs root. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { start } from "../support/process.ts";

const NETWORK = fileURLToPath(new URL("./support/ipv6-network.ts", import.meta.url));

for (const [network, name] of [["v6", "without IPv4"], ["both", "of both families"], ["v4", "without IPv6"]]) {
  test(`in a network ${name} the engine plays from libtorrent, serves it, and asks a tracker, by TCP and uTP`, async () => {
    const program = start("unshare", ["-n", process.execPath, "run", "-A", "--no-check", NETWORK, network!]);
    const timer = setTimeout(() => void program.stop(), 100_000);
    const code = await program.exited.finally(() => clearTimeout(timer));
    assertEquals(code, 0, program.output().slice(-2_000));
  });
}
