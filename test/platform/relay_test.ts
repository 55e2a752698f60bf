import path from "node:path";
import { test } from "node:test";
import { assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { clipPath } from "../support/fixtures.ts";
import { assertPlays, type Facts, facts, flags, read, watch, withViewer } from "./broadcast-support.ts";
import { run, start, withDirectory } from "./support.ts";

test("millrace relay passes a broadcast on to a viewer that knows only the relay", () =>
  withDirectory((directory) =>
    withViewer(async (engine) => {
      const source = start(["broadcast", "--source", clipPath("ts-188.ts"), ...flags(directory)]);
      const said = await facts(source);
      const common = ["--peer-host", "127.0.0.1", "--peer-port", "0", "--no-dht", "--no-lsd", "--json"];
      const magnet = `${said.magnet}&x.pe=${said.peers}`;
      const relay = start(["relay", "--url", magnet, "--state-dir", path.join(directory, "relay"), ...common]);
      const passing = JSON.parse(await relay.firstLine) as Facts & { event: string };
      assertEquals([passing.event, passing.infohash, passing.content_id], ["relay", said.infohash, said.content_id]);
      assertNotEquals(passing.peers, said.peers);
      const reader = await watch(engine, { magnet: said.magnet, peers: passing.peers });
      assertPlays(await read(reader, 100_000));
      await reader.cancel();
      relay.kill("SIGINT");
      source.kill("SIGINT");
      for (const program of [relay, source]) {
        const { code, stderr } = await program.ended;
        assertEquals([code, stderr], [0, ""]);
      }
    })
  ));

test("millrace demo --live --once watches the clip from a second process that broadcasts it, beyond its end", async () => {
  const { code, stdout, stderr } = await run(["demo", "--live", "--once", "--http-port", "0", "--peer-port", "0"]);
  assertEquals([code, stderr], [0, ""], stdout);
  assertMatch(stdout, /MPEG TS: \d+ bytes live, .* good/);
});

test("millrace broadcast continues when the reader of its output is gone", () =>
  withDirectory(async (directory) => {
    const program = start(["broadcast", "--source", clipPath("ts-188.ts"), ...flags(directory)]);
    const said = await facts(program);
    program.child.stdout!.destroy();
    await withViewer(async (engine) => {
      const reader = await watch(engine, said);
      await read(reader, 100_000);
      await reader.cancel();
    });
    program.kill("SIGINT");
    const { code, stderr } = await program.ended;
    assertEquals([code, stderr], [0, ""]);
  }));
