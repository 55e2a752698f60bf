/** How everything that is released or measured is bundled into one file. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import type { BuildOptions, Plugin } from "esbuild";
import { ROOT } from "./files.ts";

/** Defines the `require` that CommonJS packages in a bundle call for Node's own modules; must come before everything else. */
export const REQUIRE_BANNER = `import { createRequire as __createRequire } from "node:module";
const require = __createRequire(import.meta.url);`;

/**
 * Build options of the release. The runtime reads the text and keeps it: without blanks it is a third smaller, which
 * saves 5 MB of memory. Names stay so that stacks can be read, except those that two modules share.
 */
export const RELEASE = {
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20",
  minifySyntax: true,
  minifyWhitespace: true,
  banner: { js: REQUIRE_BANNER },
  logLevel: "warning",
} as const satisfies BuildOptions;

/** Modules that read files from disk: each exported function and its file. The bundle contains the bytes instead. */
const EMBEDDED = [
  { module: /[\\/]platform[\\/]demo[\\/]clip\.ts$/, files: { loadClip: "platform/demo/clip.mp4" } },
  {
    module: /[\\/]platform[\\/]warm-up[\\/]clips\.ts$/,
    files: { loadMp4: "platform/warm-up/short.mp4", loadMatroska: "platform/warm-up/short.mkv" },
  },
] as const;

/** Embeds those files in the bundle, compressed: every runtime reads and keeps the text of the whole bundle. */
export const embedFiles: Plugin = {
  name: "embed-files",
  setup(builder) {
    for (const { module, files } of EMBEDDED) {
      builder.onLoad({ filter: module }, () => {
        const loaders = Object.entries(files).map(([name, file]) => {
          const base64 = gzipSync(readFileSync(path.resolve(ROOT, file)), { level: 9 }).toString("base64");
          return `export const ${name} = () => unpack("${base64}");`;
        });
        return {
          loader: "ts",
          contents: `async function unpack(base64) {
  const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const bytes = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(bytes).arrayBuffer());
}
${loaders.join("\n")}`,
        };
      });
    }
  },
};
