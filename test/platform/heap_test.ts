import { assertEquals } from "@std/assert";
import { spawnSync } from "node:child_process";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { ROOT } from "../../scripts/support/files.ts";
import { commandOf } from "../../scripts/support/runtimes.ts";

test("keepHeapSmall() sets only flags that this version of Node knows when it is called", () => {
  const heap = pathToFileURL(path.join(ROOT, "platform/node/heap.ts"));
  const script = `import { keepHeapSmall } from ${JSON.stringify(heap.href)}; keepHeapSmall(); console.log("done");`;
  const [command, ...args] = commandOf("node");
  const child = spawnSync(command!, [...args, "--input-type=module", "--eval", script], { encoding: "utf8" });
  // V8 ignores an unknown flag but for lines on stderr. When `npx` starts Node, npm may warn there of its own settings.
  const complaints = child.stderr.split("\n").filter((line) => line !== "" && !line.startsWith("npm warn "));
  assertEquals({ out: child.stdout.trim(), complaints }, { out: "done", complaints: [] });
});
