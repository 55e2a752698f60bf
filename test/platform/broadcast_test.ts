import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { createSocket } from "node:dgram";
import { existsSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { broadcastFileName } from "../../src/inputs/broadcast-name.ts";
import { StatusLine, statusText } from "../../platform/status-line.ts";
import { clip, clipPath } from "../support/fixtures.ts";
import { silent } from "../support/fault-log.ts";
import { TsLooper } from "../../src/inputs/ts-looper.ts";
import { until } from "../support/until.ts";
import { assertPlays, facts, flags, read, watch, withViewer } from "./broadcast-support.ts";
import { run, start, withDirectory } from "./support.ts";
import { concatBytes } from "../../src/bytes/hex.ts";

test("millrace broadcast sends a looped file to a viewer, prints its facts, and ends after its last piece on SIGINT", () =>
  withDirectory((directory) =>
    withViewer(async (engine) => {
      const program = start([
        "broadcast",
        "--source",
        clipPath("ts-188.ts"),
        "--title",
        "Test TV",
        ...flags(directory),
      ]);
      const said = await facts(program);
      assertEquals(said.name, "Test TV");
      assertMatch(said.content_id, /^[0-9a-f]{40}$/);
      assert(said.magnet.includes(said.infohash));
      assert(Math.abs(said.bitrate / (clip("ts-188.ts").length / 6.02) - 1) < 0.1, String(said.bitrate));
      assertEquals(path.dirname(said.transport_file), path.join(directory, "pub"));
      assert(readFileSync(said.transport_file).includes("Test TV"));
      const state = path.join(said.transport_file.replace(/\.torrent$/, ""), "state");
      assertEquals(statSync(state).mode & 0o777, 0o600);
      // The same key cannot sign for two.
      const twin = await run(["broadcast", "--source", clipPath("ts-188.ts"), ...flags(directory)]);
      assertEquals([twin.code, twin.stdout], [2, ""]);
      assertMatch(twin.stderr, /another broadcast runs in/);
      const reader = await watch(engine, said);
      assertPlays(await read(reader, 150_000));
      program.kill("SIGINT");
      // The viewer's stream ends because the broadcast did.
      await read(reader, Infinity);
      const { code, stdout, stderr } = await program.ended;
      assertEquals([code, stderr], [0, ""]);
      const lines = stdout.trimEnd().split("\n").map((line) => JSON.parse(line) as Record<string, unknown>);
      assertEquals(lines.map(({ event }) => event).filter((event) => event !== "status"), ["broadcast", "end"]);
      const figures = lines.filter(({ event }) => event === "status");
      assert(figures.some(({ peers, upload, bitrate }) => peers === 1 && Number(upload) > 0 && Number(bitrate) > 0));
    })
  ));

test("millrace broadcast that is killed and started again continues under the same id for the same viewer", () =>
  withDirectory((directory) =>
    withViewer(async (engine) => {
      const args = ["broadcast", "--source", clipPath("ts-188.ts"), ...flags(directory)];
      const first = start(args);
      const before = await facts(first);
      const reader = await watch(engine, before);
      await read(reader, 30_000);
      process.kill(first.child.pid!, "SIGKILL");
      await first.ended;
      const port = before.peers.split(":")[1]!;
      const second = start([...args, "--peer-port", port]);
      const after = await facts(second);
      assertEquals({ ...after, peers: "" }, { ...before, peers: "" });
      // Data under way is played first, then that of the new process.
      await read(reader, 150_000);
      const heads = () => JSON.parse(second.stdout().trimEnd().split("\n").pop()!) as { head?: number };
      await until("pieces beyond those of the first process", () => (heads().head ?? -1) > 5);
      second.kill("SIGINT");
      await reader.cancel();
      assertEquals((await second.ended).code, 0);
    })
  ));

function freeUdpPort(): Promise<number> {
  const socket = createSocket("udp4");
  return new Promise((resolve) =>
    socket.bind(0, "127.0.0.1", () => {
      const { port } = socket.address();
      socket.close(() => resolve(port));
    })
  );
}

test("millrace broadcast says at once where it waits for a sender, and the content id once it is known", () =>
  withDirectory(async (directory) => {
    const port = await freeUdpPort();
    const waiting = async () => {
      const program = start(["broadcast", "--source", `udp://127.0.0.1:${port}`, ...flags(directory)]);
      const line = JSON.parse(await program.firstLine) as Record<string, unknown>;
      program.kill("SIGINT");
      await program.ended;
      return line;
    };
    const place = { event: "waiting", waiting_at: `udp://127.0.0.1:${port}` };
    assertEquals(await waiting(), { ...place, content_id: null });
    const once = start(["broadcast", "--source", clipPath("ts-188.ts"), ...flags(directory)]);
    const { content_id } = await facts(once);
    once.kill("SIGINT");
    await once.ended;
    assertEquals(await waiting(), { ...place, content_id });
  }));

test("millrace broadcast reads standard input to its end, which is the end for the viewer", () =>
  withDirectory((directory) =>
    withViewer(async (engine) => {
      const program = start(["broadcast", "--source", "-", "--bitrate", "168kbit/s", ...flags(directory)]);
      const looper = new TsLooper();
      const pass = () => concatBytes([looper.push(clip("ts-188.ts")), looper.endPass()]);
      program.child.stdin!.write(pass());
      const said = await facts(program);
      assertEquals(said.bitrate, 21_000);
      const reader = await watch(engine, said);
      program.child.stdin!.end(pass());
      assertPlays(await read(reader, Infinity));
      const { code, stderr } = await program.ended;
      assertEquals([code, stderr], [0, ""]);
    })
  ));

test("millrace broadcast and relay report errors in one line with exit code 2", () =>
  withDirectory(async (directory) => {
    const table: [string[], RegExp][] = [
      [["broadcast", ...flags(directory)], /broadcast needs --source/],
      [["broadcast", "--source", "x.ts"], /broadcast needs --name/],
      [["broadcast", "--source", "/no/such.ts", ...flags(directory)], /no\/such\.ts/],
      [["broadcast", "--source", clipPath("webm-vp9-opus.webm"), ...flags(directory)], /vp9/i],
      [["relay"], /relay needs --url/],
      [["relay", "--url", "/no/such.torrent", "--state-dir", path.join(directory, "r")], /such\.torrent/],
      [["relay", "--url", "file:///no/such%zz", "--state-dir", path.join(directory, "r")], /names no file|cannot open/],
    ];
    const lane = async (half: typeof table) => {
      for (const [args, says] of half) {
        const { code, stdout, stderr } = await run(args);
        assertEquals([code, stdout], [2, ""], stderr);
        assertEquals(stderr.trimEnd().split("\n").length, 1, stderr);
        assertMatch(stderr, says);
      }
    };
    await Promise.all([lane(table.slice(0, 3)), lane(table.slice(3))]);
    assert(!existsSync(path.join(directory, "r", "relay", "transport")));
  }));

test("broadcastFileName() keeps plain names and gives other names distinct files", async () => {
  assertEquals(await broadcastFileName("news-24_hd"), "news-24_hd");
  const names = ["News", "news", "a/b", "a b", "../..", "Première", "电视", "", "x".repeat(300), "y".repeat(300)];
  const files = await Promise.all(names.map(broadcastFileName));
  assertEquals(new Set(files).size, names.length);
  for (const file of files) assertMatch(file, /^[\p{L}\p{N}_-]{1,80}$/u);
});

test("StatusLine rewrites one line on a terminal, and prints only the facts elsewhere", async () => {
  const figures = { bitrate: 125_000, peers: 3, upload: 250_000, head: 7, lost: null };
  assertEquals(statusText(figures), "1.00 Mb/s  peers 3  upload 2.00 Mb/s  head 7");
  assertEquals(
    statusText({ ...figures, lost: "the source ended", head: -1 }),
    "source lost: the source ended  peers 3  upload 2.00 Mb/s  head -",
  );
  for (const isTTY of [true, false]) {
    let text = "";
    const out = { isTTY, write: (more: string) => text += more, on: () => {} };
    const line = new StatusLine(false, out, () => figures, silent);
    line.begin("broadcast", { content_id: "00", peers: null });
    if (isTTY) await until("the line to be there", () => text.includes("\r"));
    line.end({});
    assertEquals(text, `content id     00\n${isTTY ? `\r\x1b[K${statusText(figures)}\n` : ""}`);
  }
});
