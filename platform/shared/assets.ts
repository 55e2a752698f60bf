/** Files of npm packages that the web page loads. The build replaces this module by one that holds their bytes. */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

/** hls.js as an ES module, with subtitles. */
export async function loadHlsModule(): Promise<Uint8Array> {
  const file = createRequire(import.meta.url).resolve("hls.js/dist/hls.min.mjs");
  return new Uint8Array(await readFile(file));
}
