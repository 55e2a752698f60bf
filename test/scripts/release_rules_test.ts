import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { changesOf, versionFaults } from "../../scripts/support/release-rules.ts";

test("versionFaults() names a file when it says another version", () => {
  const files = { "a.json": '{"version":"1.2.3"}', "b.json": '{"version":"1.2.4"}', "c.json": "{}" };
  assertEquals(versionFaults("1.2.3", files), [
    "b.json says version 1.2.4, src/version.ts 1.2.3",
    "c.json says version undefined, src/version.ts 1.2.3",
  ]);
});

test("changesOf() gives the text of a version when it has one", () => {
  const changes = "# Changes\n\n## 1.10.0, 2026-01-02\n\n- b\n\n## 1.1.0\n\n- a\n- c\n\n## 1.0.0\n\n";
  assertEquals(changesOf("1.10.0", changes), "- b\n");
  assertEquals(changesOf("1.1.0", changes), "- a\n- c\n");
  for (const none of ["1.0.0", "1.1", "2.0.0"]) assertEquals(changesOf(none, changes), null);
});
