/** Reads a generated M3U list and prints time and memory: `node scripts/bench/m3u.ts [entries]`. */
import process from "node:process";
import { readM3u } from "../../src/playlist/m3u/read.ts";

const total = Number(process.argv[2] ?? 100_000);
const encoder = new TextEncoder();
let made = 0;
let bytes = 0;
const stream = new ReadableStream<Uint8Array>({
  pull(controller) {
    let text = made === 0 ? '#EXTM3U url-tvg="http://h/guide.xml.gz"\n' : "";
    for (let i = 0; i < 500 && made < total; i++, made++) {
      text +=
        `#EXTINF:-1 tvg-id="channel${made}.tv" tvg-name="Channel ${made}" tvg-logo="http://h/logos/${made}.png" ` +
        `group-title="Group ${made % 40}" catchup="default" catchup-days="7",Channel ${made} HD\n` +
        `#EXTVLCOPT:http-user-agent=Box\nhttp://h/live/${made}/index.m3u8\n`;
    }
    const chunk = encoder.encode(text);
    bytes += chunk.length;
    controller.enqueue(chunk);
    if (made >= total) controller.close();
  },
});
const rssBefore = process.memoryUsage().rss;
let rssMost = rssBefore;
let entries = 0;
const start = performance.now();
for await (const event of readM3u(stream)) {
  if (event.kind !== "entry") continue;
  if (++entries % 1000 === 0) rssMost = Math.max(rssMost, process.memoryUsage().rss);
}
const seconds = (performance.now() - start) / 1000;
const mib = (count: number) => (count / 1024 / 1024).toFixed(1);
console.log(
  `${entries} entries, ${mib(bytes)} MiB in ${seconds.toFixed(2)} s, at most ${
    mib(rssMost - rssBefore)
  } MiB more memory`,
);
