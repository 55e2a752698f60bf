/** Peers of a torrent that nobody can dial meet with the help of one in the open (BEP 55), us and libtorrent. Needs root. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { start } from "../support/process.ts";

const NETWORK = fileURLToPath(new URL("./support/rendezvous-network.ts", import.meta.url));

for (
  const [part, name] of [
    ["asks", "we play from a libtorrent that nobody can dial, as another one brings us together"],
    ["asked", "libtorrent fetches from us, whom nobody can dial, as another one brings us together"],
    ["between", "two libtorrents that nobody can dial meet with our help"],
  ]
) {
  test(name!, async () => {
    const program = start("unshare", ["-n", process.execPath, "run", "-A", "--no-check", NETWORK, part!]);
    const timer = setTimeout(() => void program.stop(), 100_000);
    const code = await program.exited.finally(() => clearTimeout(timer));
    assertEquals(code, 0, program.output().slice(-2_000));
  });
}
