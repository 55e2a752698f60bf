/**
 * Bundles the web page, its texts, the page of the API, hls.js and libass into generated files, which the engine serves, so that they are
 * present in a clone, in the built file and in an embedder's program without a build step. `--check` fails when one is
 * stale.
 */
import { Buffer } from "node:buffer";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";
import { gunzipSync, gzipSync } from "node:zlib";
import { build, stop } from "esbuild";
import { ROOT } from "./support/files.ts";

/** Generated file, prefix of its names, script, style. */
const PAGES = [
  ["src/webui/assets.generated.ts", "APP", "app.tsx", "style.css"],
  ["src/webui/docs/assets.generated.ts", "DOCS", "docs/docs.tsx", "docs/docs.css"],
] as const;

/** Languages that pages load when they need them: all but English, which is part of the page. */
const LANGUAGES = ["de", "es", "fr", "it", "pt", "ru", "zh"];

/** Syntax that browsers of the last five years support, including those of TVs. */
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

/** hls.js with subtitles, packed. Packers differ, so the check compares what it unpacks to. */
function bundleHls(): void {
  const target = "src/webui/hls-js/assets.generated.ts";
  const file = path.join(ROOT, target);
  const require = createRequire(import.meta.url);
  const { version, license, homepage } = require("hls.js/package.json") as Record<string, string>;
  const library = readFileSync(require.resolve("hls.js/dist/hls.min.mjs"));
  const head = `/** hls.js ${version} (${license}, ${homepage}), put here by scripts/build-webui.ts. */

/** hls.js as an ES module: gzip, in base64. */
export const HLS_JS_GZIP = "`;
  if (!process.argv.includes("--check")) {
    writeFileSync(file, `${head}${gzipSync(library, { level: 9 }).toString("base64")}";\n`);
    return;
  }
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  const packed = Buffer.from(text.slice(head.length, -3), "base64");
  if (!text.startsWith(head) || !gunzipSync(packed).equals(library)) stale(target);
}

/** libass with its worker and a font of last resort. */
async function bundleLibass(): Promise<void> {
  const target = "src/webui/libass/assets.generated.ts";
  const file = path.join(ROOT, target);
  const require = createRequire(import.meta.url);
  const { version, license, homepage } = require("jassub/package.json") as Record<string, string>;
  // Without SIMD, which not every browser of SYNTAX has: half a megabyte more would be a third again of all that is packed.
  const library = readFileSync(require.resolve("jassub/dist/wasm/jassub-worker.wasm"));
  const font = readFileSync(require.resolve("jassub/dist/default.woff2"));
  const worker = await bundled("drawn/ass-worker.ts");
  const head = `/**
 * libass as jassub ${version} builds it (${license}, ${homepage}), with Liberation Sans
 * (OFL-1.1), put here by scripts/build-webui.ts.
 */
`;
  const packed = (name: string, what: string, content: Uint8Array) => `
/** ${what}, in base64. */
export const ${name} = "${Buffer.from(content).toString("base64")}";
`;
  const gzipped = (content: Uint8Array | string) => gzipSync(content, { level: 9 });
  if (!process.argv.includes("--check")) {
    writeFileSync(
      file,
      head + packed("ASS_WORKER_GZIP", "The worker: gzip", gzipped(worker)) +
        packed("LIBASS_GZIP", "The library: gzip", gzipped(library)) +
        packed("LAST_FONT", "The font: WOFF2", font),
    );
    return;
  }
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  const [there, ...more] = [...text.matchAll(/ = "([^"]*)";/g)].map(([, value]) => Buffer.from(value!, "base64"));
  const isSame = text.startsWith(head) && more.length === 2 && gunzipSync(there!).toString() === worker &&
    gunzipSync(more[0]!).equals(library) && more[1]!.equals(font);
  if (!isSame) stale(target);
}

/** The catalogues of texts as JSON. */
async function bundleTexts(): Promise<void> {
  const lines = await Promise.all(LANGUAGES.map(async (tag) => {
    const catalogue = (await import(`../src/webui/texts/${tag}.ts`))[tag.toUpperCase()];
    return `  ${tag}: ${JSON.stringify(JSON.stringify(catalogue))},`;
  }));
  write(
    "src/webui/texts/assets.generated.ts",
    `/** Made by scripts/build-webui.ts from the files beside it: change those, and run it again. */

/** The page's texts by language, as JSON. */
export const TEXTS: Readonly<Record<string, string>> = {
${lines.join("\n")}
};
`,
  );
}

function write(target: string, text: string): void {
  const file = path.join(ROOT, target);
  if (!process.argv.includes("--check")) writeFileSync(file, text);
  else if (!existsSync(file) || readFileSync(file, "utf8") !== text) stale(target);
}

function stale(target: string): void {
  console.error(`${target} is stale: run scripts/build-webui.ts`);
  process.exitCode = 1;
}

for (const [target, name, entry, sheet] of PAGES) {
  const [script, style] = [await bundled(entry), await bundled(sheet)];
  const text = `/** Made by scripts/build-webui.ts from the files beside it: change those, and run it again. */

/** The page's script. */
export const ${name}_JS = ${JSON.stringify(script)};

/** The page's style sheet. */
export const ${name}_CSS = ${JSON.stringify(style)};
`;
  write(target, text);
  const kilobytes = ({ length }: string) => (length / 1000).toFixed(0);
  console.log(`${entry}: ${kilobytes(script)} KB of script, ${kilobytes(style)} KB of style`);
}
await bundleLibass();
await stop();
bundleHls();
await bundleTexts();
