import process from "node:process";
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { runtimeName } from "../../platform/detect.ts";
import "../../platform/node/ports.ts";

test("createPorts() of Node keeps reports of the process from looking up the names of connected machines", () => {
  const { report } = process as { report?: { excludeNetwork?: boolean } };
  if (runtimeName() === "node") assertEquals(report?.excludeNetwork, true);
});
