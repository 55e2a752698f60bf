/** Our DHT node where others check ids (BEP 42). Needs root. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { start } from "../support/process.ts";

const NETWORK = fileURLToPath(new URL("./support/strict-dht.ts", import.meta.url));

test("libtorrent nodes that take only ids that fit their addresses take ours, over IPv4 and IPv6", async () => {
  const program = start("unshare", ["-n", process.execPath, "run", "-A", "--no-check", NETWORK]);
  const timer = setTimeout(() => void program.stop(), 100_000);
  const code = await program.exited.finally(() => clearTimeout(timer));
  assertEquals(code, 0, program.output().slice(-2_000));
});
