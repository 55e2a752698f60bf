/** Entry point of the built file, on any runtime. */
import { runtimeName } from "../detect.ts";

switch (runtimeName()) {
  case "bun":
    await import("../bun/main.ts");
    break;
  case "deno":
    await import("../deno/main.ts");
    break;
  case "node":
    await import("../node/main.ts");
}
