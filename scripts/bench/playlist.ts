/**
 * Times operations on large playlists, in a file, in one process: `node scripts/bench/playlist.ts [entries]`. Prints
 * seconds, CPU seconds, the longest pause of the event loop, and the memory used.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { loadPorts } from "../../platform/detect.ts";
import { createStore } from "../../src/database/store.ts";
import { importList } from "../../src/playlist/import.ts";
import { Playlist } from "../../src/playlist/items.ts";
import { Lists } from "../../src/playlist/lists.ts";
import type { TaskProgress } from "../../src/playlist/tasks.ts";

const entries = Number(process.argv[2] ?? 100_000);
const directory = await mkdtemp(join(tmpdir(), "millrace-bench-"));
const ports = await loadPorts({ log: { level: "error" } });
const store = createStore(ports, { kind: "file", path: `${directory}/millrace.db` });
const playlist = new Playlist(store, ports.clock);

/** The list as a stream, so that it costs no memory itself; `variant` changes every address. */
function list(variant: string): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let made = 0;
  return new ReadableStream({
    pull(controller) {
      let text = made === 0 ? "#EXTM3U\n" : "";
      for (let i = 0; i < 500 && made < entries; i++, made++) {
        text +=
          `#EXTINF:-1 tvg-id="channel${made}.tv" tvg-name="Channel ${made}" tvg-logo="http://h/logos/${made}.png" ` +
          `group-title="Group ${made % 40}",Channel ${made} HD\nhttp://h/live/${made}/index.m3u8${variant}\n`;
      }
      controller.enqueue(encoder.encode(text));
      if (made >= entries) controller.close();
    },
  });
}

async function timed(what: string, action: () => Promise<unknown>): Promise<void> {
  const before = process.memoryUsage().rss;
  let most = before;
  let last = performance.now();
  let longest = 0;
  const look = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last - 5);
    last = now;
    most = Math.max(most, process.memoryUsage().rss);
  };
  const timer = setInterval(look, 5);
  const begun = performance.now();
  const used = process.cpuUsage();
  await action();
  const seconds = (performance.now() - begun) / 1000;
  const { user, system } = process.cpuUsage(used);
  look();
  clearInterval(timer);
  const mib = ((most - before) / 1024 / 1024).toFixed(0);
  const cpu = ((user + system) / 1e6).toFixed(2);
  console.log(
    `${what}: ${seconds.toFixed(2)} s (${cpu} CPU-s), longest pause ${longest.toFixed(0)} ms, ${mib} MiB more memory`,
  );
}

const progress: TaskProgress = {
  done: 0,
  total: 0,
  skipped: 0,
  signal: new AbortController().signal,
  report: () => {},
};
let variant = "";
const lists = new Lists({
  store,
  files: ports.files,
  stateDir: null,
  clock: ports.clock,
  log: ports.log,
  sealer: { seal: (text) => Promise.resolve(text), open: (text) => Promise.resolve(text) },
  open: (url) => Promise.resolve({ status: 200, headers: new Headers(), url, isPublic: true, body: list(variant) }),
});
const drained = async (parts: AsyncIterable<string | Uint8Array>) => {
  let length = 0;
  for await (const part of parts) length += part.length;
  return length;
};
const request = { playbackBase: "http://h/engine", output: "getstream", logoUrl: () => "" } as const;
const search = { query: "channel 99", page: 0, pageSize: 50, groupByChannels: false };

console.log(`${entries} entries on ${ports.runtime.name}`);
await store.open();
await timed(
  "import",
  () => importList(store, ports.clock, { open: () => list(""), owner: "", allowPrivate: true }, progress),
);
await timed(
  "import again, nothing new",
  () => importList(store, ports.clock, { open: () => list(""), owner: "", allowPrivate: true }, progress),
);
await timed("playlist_get, everything", () => drained(playlist.json()));
await timed("playlist_get, a page in the middle", () => drained(playlist.json({ offset: entries / 2, limit: 50 })));
await timed("search, first page", () => lists.search(search));
const byChannel = { ...search, query: "channel", pageSize: 100, groupByChannels: true };
await timed("search by channel, first page", () => lists.search(byChannel));
await timed("search by channel, second page", () => lists.search({ ...byChannel, page: 1 }));
await timed("categories", () => playlist.categories());
await timed("export", () => drained(lists.export(request)));
await timed("delete everything", () => playlist.clear());
const id = await lists.addExternal(
  { type: "broadcast", category: "", name: "n", url: "http://h/", updateInterval: 0, allowPrivate: true },
  false,
);
await timed("external playlist, first update", () => lists.updateExternal(id));
await timed("the same again", () => lists.updateExternal(id));
variant = "?token=2";
await timed("the same with other addresses", () => lists.updateExternal(id));
await lists.close();
await store.close();
await rm(directory, { recursive: true });
