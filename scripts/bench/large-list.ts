/**
 * How long others wait while a large playlist is worked on: `node scripts/bench/large-list.ts [entries] [runtime…]`. Runs
 * the built program (`scripts/build.ts`) with its database in a file, as users do, imports, refreshes, clears and deletes over HTTP, and meanwhile
 * asks for `get_status` forty times a second and for a page of `playlist_get` four times. Prints Markdown: seconds, seconds
 * of processor time, the longest that an answer to each took, ms, and the peak of the process's memory in that step, MB.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { commandOf, DENO_HEAP_FLAGS, isRuntime, type Runtime } from "../support/runtimes.ts";
import { line, start, stop, usage } from "./children.ts";

const TOKEN = "0123456789abcdef".repeat(4);
const PROGRAM = path.join(import.meta.dirname!, "../../dist/millrace.mjs");
/** Time between two checks of a task, ms. */
const LOOK_MS = 50;
/** Pause between two requests of the other clients, ms. */
const STATUS_MS = 25;
const PAGE_MS = 250;

const [first, ...others] = process.argv.slice(2);
const entries = Number(first ?? 100_000);
const runtimes = others.filter(isRuntime);

/** A list as providers send them; `variant` changes every address. */
function listOf(variant: string): Uint8Array<ArrayBuffer> {
  const parts = ["#EXTM3U\n"];
  for (let i = 0; i < entries; i++) {
    parts.push(
      `#EXTINF:-1 tvg-id="channel${i}.tv" tvg-name="Channel ${i}" tvg-logo="http://h/logos/${i}.png" ` +
        `group-title="Group ${i % 40}",Channel ${i} HD\nhttp://h/live/${i}/index.m3u8${variant}\n`,
    );
  }
  return new TextEncoder().encode(parts.join(""));
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function measure(runtime: Runtime): Promise<void> {
  const directory = mkdtempSync(path.join(process.env["BENCH_DIR"] ?? os.tmpdir(), "millrace-bench-"));
  const flags = runtime === "deno" ? ["run", "-A", "--no-check", "-q", DENO_HEAP_FLAGS] : [];
  const options = ["--http-port", "0", "--peer-port", "0", "--no-dht", "--no-lsd", "--state-dir", directory];
  const child = start([...commandOf(runtime), ...flags, PROGRAM, ...options, "--access-token", TOKEN]);
  let variant = listOf("");
  const source = createServer((_request, response) => response.end(variant));
  await new Promise<void>((resolve) => source.listen(0, "127.0.0.1", resolve));
  const list = `http://127.0.0.1:${(source.address() as AddressInfo).port}/list.m3u`;
  try {
    const base = (await line(child, "ready ", 30_000)).split(" ")[1]!;
    const call = async (method: string, params: Record<string, string> = {}, init: RequestInit = {}) => {
      const query = new URLSearchParams({ method, token: TOKEN, ...params });
      const { result, error } = await (await fetch(`${base}/server/api?${query}`, init)).json();
      if (error !== null) throw new Error(`${method}: ${error.message}`);
      return result;
    };
    const timed = async (what: string, action: () => Promise<unknown>) => {
      try {
        writeFileSync(`/proc/${child.pid}/clear_refs`, "5");
      } catch {
        // Without this reset the peak is that of all steps so far.
      }
      const longest = { get_status: 0, playlist_get: 0 };
      let isOver = false;
      const asking = Object.entries({ get_status: STATUS_MS, playlist_get: PAGE_MS }).map(async ([method, pauseMs]) => {
        for (let n = 0; !isOver; n++) {
          const begun = performance.now();
          await call(method, method === "playlist_get" ? { offset: String(n % 10 * entries / 10), limit: "50" } : {});
          const name = method as keyof typeof longest;
          longest[name] = Math.max(longest[name], performance.now() - begun);
          await sleep(pauseMs);
        }
      });
      const before = usage(child.pid!).cpuSeconds;
      const begun = performance.now();
      await action();
      const seconds = (performance.now() - begun) / 1000;
      isOver = true;
      await Promise.all(asking);
      const { cpuSeconds, peakMB } = usage(child.pid!);
      const row = [
        what,
        seconds.toFixed(2),
        (cpuSeconds - before).toFixed(2),
        longest.get_status.toFixed(0),
        longest.playlist_get.toFixed(0),
        peakMB.toFixed(0),
      ];
      console.log(`| ${row.join(" | ")} |`);
    };
    const imported = async () => {
      const { task_id } = await call("playlist_import", {}, { method: "POST", body: variant });
      for (;;) {
        const { state, error } = await call("get_task", { task_id: String(task_id) });
        if (state === "done") return;
        if (state === "failed") throw new Error(error);
        await sleep(LOOK_MS);
      }
    };
    console.log(`\n| ${entries} entries, ${runtime} | s | CPU-s | get_status, ms | playlist_get, ms | peak, MB |`);
    console.log("| --- | --- | --- | --- | --- | --- |");
    await timed("nothing", () => sleep(1000));
    await timed("playlist_import", imported);
    await timed("the same again", imported);
    await timed("playlist_get, everything", () => call("playlist_get"));
    await timed("playlist_clear", () => call("playlist_clear"));
    const params = { type: "broadcast", category: "", name: "n", url: list, update_interval: "0", update_now: "0" };
    const id = String(await call("external_playlist_add", params));
    const update = () => call("external_playlist_update", { id });
    await timed("external_playlist_update", update);
    await timed("unchanged", update);
    variant = listOf("?token=2");
    await timed("every address changed", update);
    await timed("external_playlist_delete", () => call("external_playlist_delete", { id }));
  } finally {
    await stop(child);
    source.close();
    source.closeAllConnections();
    rmSync(directory, { recursive: true, force: true });
  }
}

for (const runtime of runtimes.length > 0 ? runtimes : ["deno", "node", "bun"] as const) await measure(runtime);
