/**
 * Bundles the web page into `src/webui/assets.generated.ts`, which the engine serves: so that it is there from a clone, in the
 * built file and in an embedder's program alike, without a build step. `--check` fails when that file is stale.
 */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { build, stop } from "esbuild";
import { ROOT } from "./support/files.ts";

const TARGET = path.join(ROOT, "src/webui/assets.generated.ts");

/** Syntax that browsers of the last five years have, those of TVs among them. */
const SYNTAX = "es2020";

async function bundled(entry: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [path.join(ROOT, "src/webui", entry)],
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: SYNTAX,
    charset: "utf8",
    jsx: "automatic",
    jsxImportSource: "hono/jsx/dom",
    legalComments: "none",
    logLevel: "warning",
  });
  return outputFiles[0]!.text.trimEnd();
}

const [script, style] = [await bundled("app.tsx"), await bundled("style.css")];
await stop();
const text = `/** Made by scripts/build-webui.ts from the files beside it: change those, and run it again. */

/** The page's script. */
export const APP_JS = ${JSON.stringify(script)};

/** The page's style sheet. */
export const APP_CSS = ${JSON.stringify(style)};
`;
if (!process.argv.includes("--check")) writeFileSync(TARGET, text);
else if (readFileSync(TARGET, "utf8") !== text) {
  console.error("src/webui/assets.generated.ts is stale: run scripts/build-webui.ts");
  process.exit(1);
}
console.log(
  `web page: ${(script.length / 1000).toFixed(0)} KB of script, ${(style.length / 1000).toFixed(0)} KB of style`,
);
