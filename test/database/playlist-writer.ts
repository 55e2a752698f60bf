/**
 * Child of the playlist's crash test: performs random operations until it is killed, and prints each before it begins
 * and when it is acknowledged. Lists come from memory: refresh number n has the entries of `entriesOf(n)`.
 */
import process from "node:process";
import { loadPorts } from "../../platform/detect.ts";
import { createStore } from "../../src/database/store.ts";
import { MillraceError } from "../../src/errors.ts";
import { importList } from "../../src/playlist/import.ts";
import { Playlist } from "../../src/playlist/items.ts";
import { Lists } from "../../src/playlist/lists.ts";
import type { TaskProgress } from "../../src/playlist/tasks.ts";
import { listText } from "./playlist-model.ts";

const [path, seedText] = process.argv.slice(2);
let seed = Number(seedText) * 7919 + 17;
const random = (below: number) => (seed = (seed * 48271) % 0x7fffffff) % below;
const ports = await loadPorts({ log: { level: "error" } });
const { clock, files, log } = ports;
const store = createStore(ports, { kind: "file", path: path! });
const playlist = new Playlist(store, clock);
let version = 0;
const lists = new Lists({
  store,
  files,
  stateDir: null,
  clock,
  log,
  sealer: { seal: (text) => Promise.resolve(text), open: (text) => Promise.resolve(text) },
  open: (url) =>
    Promise.resolve({
      status: 200,
      headers: new Headers(),
      url,
      isPublic: true,
      body: new Blob([listText(`list-${version}`, version)]).stream(),
    }),
});
const db = await store.open();
const external = (await lists.external.get())[0]?.id ?? await lists.addExternal({
  type: "content",
  category: "",
  name: "n",
  url: "http://h/list",
  updateInterval: 0,
  allowPrivate: false,
}, false);

/** Any item of the playlist or the trash, the user's own or not. */
async function anyItem(isDeleted: number): Promise<number | null> {
  const rows = await db.selectFrom("playlist_items").select("id").where("is_deleted", "=", isDeleted).execute();
  return rows.length === 0 ? null : rows[random(rows.length)]!.id;
}

const progress = (): TaskProgress => ({
  done: 0,
  total: 0,
  skipped: 0,
  signal: new AbortController().signal,
  report: () => {},
});

const say = (...words: readonly unknown[]) => void process.stdout.write(`${JSON.stringify(words)}\n`);

for (let n = 0; n < 1000; n++) {
  const tag = `${seedText}-${n}`;
  const which = random(10);
  const id = which === 5 ? await anyItem(1) : await anyItem(0);
  const value = random(2) === 1;
  try {
    if (which < 2 || id === null) {
      say("begin", "add", tag);
      await playlist.add({ title: `add ${tag}`, transportType: "bt", isLive: -1, url: `http://h/${tag}` });
      say("done", "add", tag);
    } else if (which === 2) {
      say("begin", "favorite", id, value);
      await playlist.setFlag("is_favorite", [id], value);
      say("done", "favorite", id, value);
    } else if (which === 3) {
      say("begin", "title", id, `title ${tag}`);
      await playlist.update(id, { title: `title ${tag}` });
      say("done", "title", id, `title ${tag}`);
    } else if (which === 4) {
      say("begin", "remove", id);
      await playlist.remove([id]);
      say("done", "remove", id);
    } else if (which === 5) {
      say("begin", "restore", id);
      await playlist.restore(id);
      say("done", "restore", id);
    } else if (which < 8) {
      const count = 1 + random(40);
      say("begin", "import", tag, count);
      const bytes = new TextEncoder().encode(listText(tag, count));
      await importList(
        store,
        clock,
        { open: () => new Blob([bytes]).stream(), owner: "", allowPrivate: true },
        progress(),
      );
      say("done", "import", tag, count);
    } else {
      version = 1 + random(60);
      say("begin", "refresh", version);
      await lists.updateExternal(external);
      say("done", "refresh", version);
    }
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    say("refused");
  }
}
await lists.close();
await store.close();
