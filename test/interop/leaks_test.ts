/** What goes beside a proxy or an interface, counted packet by packet in a network of its own. */
import { test } from "node:test";
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import process from "node:process";
import { assertEquals } from "@std/assert";
import { temporaryDirectory } from "../support/engine.ts";
import { run } from "../support/process.ts";

test("createEngine() sends nothing beside its proxy, which is there, refuses, or is gone, nor beside its interface, which goes and comes back", async () => {
  const directory = await temporaryDirectory();
  const { path } = directory;
  try {
    await writeFile(`${path}/hosts`, "127.0.0.1 localhost\n23.1.2.3 tracker.test files.test seed.test\n");
    await writeFile(`${path}/resolv.conf`, "nameserver 23.1.2.3\n");
    const script = fileURLToPath(new URL("./support/leaks.ts", import.meta.url));
    const inside =
      `mount --bind ${path}/hosts /etc/hosts && mount --bind ${path}/resolv.conf /etc/resolv.conf && exec "$@"`;
    const program = [process.execPath, "run", "-A", "--no-check", script, path];
    const { code, text, stderr } = await run("unshare", ["-n", "-m", "sh", "-c", inside, "sh", ...program], {
      timeoutMs: 240_000,
    });
    assertEquals(code, 0, `${text}\n${stderr}`);
  } finally {
    await directory.remove();
  }
});
