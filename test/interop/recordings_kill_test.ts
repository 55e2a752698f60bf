/** The real program is killed while it records: what it had recorded plays after its restart, and the recording goes on. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { EndlessClip } from "../playback/live-support.ts";
import { quietFlags, start, withDirectory } from "../platform/support.ts";
import { run } from "../support/process.ts";
import { until } from "../support/until.ts";
import { serveWeb } from "../support/web.ts";

/** Between two pieces of the upstream, ms. */
const PIECE_MS = 50;

interface Recording {
  readonly id: string;
  readonly state: string;
  readonly size: number;
  readonly duration: number;
  readonly url: string;
  readonly manifest_url: string;
}

test("a recording survives kill -9 to its last segment: it plays after a restart, and goes on", async () => {
  const web = await serveWeb((_request, response) => {
    const media = new EndlessClip();
    response.writeHead(200).write(media.next(3000));
    const timer = setInterval(() => response.write(media.next(PIECE_MS)), PIECE_MS);
    response.on("close", () => clearInterval(timer));
  });
  try {
    await withDirectory(async (directory) => {
      const stateDir = join(directory, "state");
      const open = async () => {
        const program = start(quietFlags(directory));
        const url = /^ready (http:\S+?)\/? peers/.exec(await program.firstLine)![1]!;
        const call = async (method: string, params: Record<string, string> = {}) => {
          const token = readFileSync(join(stateDir, "access-token"), "utf8").trim();
          const answer = await fetch(`${url}/server/api?${new URLSearchParams({ method, token, ...params })}`);
          const { result, error } = await answer.json();
          assertEquals(error, null, method);
          return result;
        };
        const recording = async (): Promise<Recording> => (await call("recording_list")).recordings[0];
        const kill = async () => {
          program.child.kill("SIGKILL");
          await program.ended;
        };
        return { call, recording, kill };
      };
      const first = await open();
      let before: Recording;
      let bytes: Uint8Array;
      let id: string;
      try {
        id = (await first.call("recording_start", { direct_url: `${web.base}/live`, duration: "3600" })).id;
        await until("three segments are recorded", async () => (await first.recording()).duration > 6, 60_000);
        before = await first.recording();
        bytes = await readFile(join(stateDir, "recordings", `${id}.ts`));
      } finally {
        await first.kill();
      }
      const second = await open();
      try {
        const after = await second.recording();
        assert(after.size >= before.size && after.duration >= before.duration, JSON.stringify([before, after]));
        const kept = await readFile(join(stateDir, "recordings", `${id}.ts`));
        assertEquals(kept.subarray(0, before.size), bytes.subarray(0, before.size));
        await until("it goes on", async () => (await second.recording()).duration > after.duration + 3, 60_000);
        await second.call("recording_stop", { id });
        const { url, manifest_url: manifest, duration } = await second.recording();
        for (const at of [url, manifest]) {
          const { code, stderr } = await run("ffmpeg", ["-v", "error", "-nostdin", "-i", at, "-f", "null", "-"]);
          // Where it was killed the clock goes on somewhere else, and the clip's own times overlap where it begins again.
          const complaints = stderr.split("\n").filter((line) => line !== "" && !/monotonic|dts/i.test(line));
          assertEquals([code, complaints], [0, []], at);
        }
        const probe = await run("ffprobe", [
          "-v",
          "error",
          "-count_packets",
          "-select_streams",
          "v",
          "-show_entries",
          "stream=nb_read_packets",
          "-of",
          "csv=p=0",
          url,
        ]);
        const pictures = Number(/\d+/.exec(probe.text)?.[0]);
        assert(pictures > duration * 20, `${pictures} pictures in ${duration} s`);
      } finally {
        await second.kill();
      }
    });
  } finally {
    await web.close();
  }
});
