/** Fronts of the real program, at ports of their own: ffmpeg plays what clients are given. */
import { after, before, test } from "node:test";
import { assertEquals, assertMatch } from "@std/assert";
import { quietFlags, type Running, start, withDirectory } from "../platform/support.ts";
import { type SeededFiles, seedFiles } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { run } from "../support/process.ts";
import { until } from "../support/until.ts";

let season: SeededFiles;

before(async () => {
  season = await seedFiles([
    { path: "Episode 10.ts", bytes: clip("ts-188.ts") },
    { path: "Episode 2.mkv", bytes: clip("mkv-cues.mkv") },
    { path: "Episode 2.srt", bytes: new TextEncoder().encode("1\n00:00:00,000 --> 00:00:01,000\nHello\n") },
  ], { name: "Season" });
});
after(() => season?.close());

/** Runs `body` with the program and the addresses of its fronts. */
async function withFronts(
  names: readonly string[],
  body: (urls: Readonly<Record<string, string>>, program: Running) => Promise<void>,
): Promise<void> {
  await withDirectory(async (directory) => {
    const fronts = names.flatMap((name) => ["--front", `${name}=0`]);
    const program = start(["serve", ...quietFlags(directory), ...fronts, "--log-format", "json"]);
    try {
      await program.firstLine;
      const lines = program.stderr().split("\n").filter((line) => line.includes('"a front listens"'));
      await body(
        Object.fromEntries(lines.map((line) => JSON.parse(line)).map(({ front, url }) => [front, url])),
        program,
      );
    } finally {
      program.kill("SIGTERM");
      await program.ended;
    }
  });
}

/** What ffmpeg says while it decodes `url`. */
async function complaints(url: string): Promise<string> {
  const { code, stderr } = await run("ffmpeg", ["-v", "error", "-nostdin", "-i", url, "-f", "null", "-"]);
  return code === 0 ? stderr : `${code} ${stderr}`;
}

test("ffmpeg plays the files of a torrent by the addresses that --front torrserver lists", () =>
  withFronts(["torrserver"], async ({ torrserver: url }) => {
    assertMatch(await (await fetch(`${url}/echo`)).text(), /^MatriX\.\d+$/);
    const ask = async (body: unknown) =>
      await (await fetch(`${url}/torrents`, { method: "POST", body: JSON.stringify(body) })).json();
    const { hash } = await ask({ action: "add", link: season.magnet });
    await until("the files are known", async () => (await ask({ action: "get", hash })).file_stats?.length === 3);
    const list = await (await fetch(`${url}/stream?link=${hash}&m3u`)).text();
    const addresses = list.split("\n").filter((line) => line.startsWith("http"));
    assertEquals(addresses.map((one) => new URL(one).pathname), ["/stream/Episode%202.mkv", "/stream/Episode%2010.ts"]);
    for (const address of [...addresses, `${url}/play/${hash}/1`]) assertEquals(await complaints(address), "", address);
  }));
