/** Builds an engine that lies from the sources of the honest one. */
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Plugin, stop } from "esbuild";
import type { LiarKind } from "../../../test/simulation/lies.ts";
import { embedFiles, RELEASE } from "../../support/bundle.ts";
import { ROOT } from "../../support/files.ts";
import { commandOf } from "../../support/runtimes.ts";
import { LIES_VARIABLE } from "./lies-variable.ts";

const HERE = fileURLToPath(new URL(".", import.meta.url));

/** The engine imports these modules of ours instead of its own, which they extend. */
const lies: Plugin = {
  name: "lies",
  setup(builder) {
    builder.onResolve({ filter: /[\\/]live-(?:node|swarm)\.ts$/ }, ({ path: module, importer }) => {
      if (importer.startsWith(HERE)) return undefined;
      return { path: path.join(HERE, path.basename(module).replace("live-", "lying-")) };
    });
  },
};

/** Builds one into `directory`; returns the command that starts it. It runs on Node, whatever the others run on. */
export async function lyingEngine(directory: string, kind: LiarKind): Promise<readonly string[]> {
  const outfile = path.join(directory, "liar.mjs");
  const entryPoints = [path.join(ROOT, "platform/any/main.ts")];
  await build({ ...RELEASE, entryPoints, outfile, plugins: [embedFiles, lies] });
  await stop();
  return ["env", `${LIES_VARIABLE}=${kind}`, ...commandOf("node"), outfile];
}
