/** A channel of two broadcasts over real connections, and what a player receives when the first of them ends. */
import { assert, assertEquals } from "@std/assert";
import { concatBytes } from "../../src/bytes/hex.ts";
import { TOKEN } from "../api/support.ts";
import { onAir } from "./live.ts";
import { until } from "./until.ts";

/** Bytes read before the first broadcast ends, and after: data under way, then those of the second. */
const BEFORE_BYTES = 60_000;
const AFTER_BYTES = 250_000;

/** The MPEG TS of `getstream?item=` that begins with `ts-188.ts` and continues with `secondClip`. */
export async function recordFailover(secondClip: string): Promise<Uint8Array> {
  const first = await onAir({ viewer: { accessToken: TOKEN } });
  const second = await onAir({ clip: secondClip });
  try {
    const { url } = first.viewer;
    const call = async (method: string, params: Record<string, string> = {}, body?: FormData) => {
      const query = new URLSearchParams({ method, token: TOKEN, ...params });
      const init = body === undefined ? {} : { method: "POST", body };
      const { result, error } = await (await fetch(`${url}/server/api?${query}`, init)).json();
      assertEquals(error, null, method);
      return result;
    };
    // As a list names them: items by magnets, one channel by its tvg-id.
    const entries = [first.magnet, second.magnet].map((magnet) => `#EXTINF:-1 tvg-id="one.tv",One\n${magnet}\n`);
    const body = new FormData();
    body.set("file", new File([`#EXTM3U\n${entries.join("")}`], "list.m3u"));
    const { task_id: task } = await call("playlist_import", {}, body);
    await until("the list is imported", async () => {
      const { state, error } = await call("get_task", { task_id: String(task) });
      assert(state !== "failed", error);
      return state === "done";
    });
    const { playlist } = await call("playlist_get");
    assertEquals(playlist.length, 2);

    const channel = `${url}/engine/getstream?item=${playlist[0].id}`;
    const head = await fetch(channel, { method: "HEAD", redirect: "manual" });
    assertEquals([head.status, head.headers.get("content-type")], [200, "video/mp2t"]);
    const leave = new AbortController();
    const response = await fetch(channel, {
      redirect: "manual",
      signal: leave.signal,
    });
    assertEquals([response.status, response.headers.get("content-type")], [200, "video/mp2t"]);
    const reader = response.body!.getReader();
    const parts: Uint8Array[] = [];
    const readTo = async (bytes: number) => {
      for (let count = 0; count < bytes;) {
        const { done, value } = await reader.read();
        assert(!done, "it goes on");
        parts.push(value);
        count += value.length;
      }
    };
    await readTo(BEFORE_BYTES);
    await first.broadcast.close();
    first.input.end();
    await readTo(AFTER_BYTES);
    leave.abort();
    const ts = concatBytes(parts);
    return ts.subarray(0, ts.length - ts.length % 188);
  } finally {
    await first.close();
    await second.close();
  }
}
