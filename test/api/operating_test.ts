/** The methods behind the settings of the web page. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { MAX_LINE_CHARS, MAX_LOG_LINES, RecentLog } from "../../src/engine/recent-log.ts";
import { MillraceError } from "../../src/errors.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { clip } from "../support/fixtures.ts";
import { seedFiles, serveEngine, serveOn, temporaryDirectory } from "../support/engine.ts";
import { TOKEN, withEngine } from "./support.ts";

const token = { token: TOKEN };

test("get_settings follows what set_allow_* and set_limits change, and get_settings counts what runs", async () => {
  const seeder = await seedFiles([{ path: "film.mp4", bytes: clip("mp4-30fps.mp4") }]);
  try {
    await withEngine(async ({ engine, call }) => {
      const before = (await call("get_settings", token)).result;
      assertEquals(before.access, { intranet: true, internet: false });
      assertEquals([before.limits.download, before.limits.max_peers, before.swarms], [0, 33, 0]);
      await call("set_allow_intranet_access", { ...token, value: "0" });
      await call("set_allow_remote_access", { ...token, value: "1" });
      assertEquals((await call("set_limits", { ...token, download: "500000" })).result, "ok");
      assertEquals((await call("set_limits", { ...token, upload: "100000" })).result, "ok");
      const lease = engine.swarms.acquire({ metainfo: seeder.metainfo });
      const after = (await call("get_settings", token)).result;
      assertEquals(after.access, { intranet: false, internet: true });
      assertEquals([after.limits.download, after.limits.upload, after.swarms], [500_000, 100_000, 1]);
      lease.release();
      assertEquals(after.cushion, "off");
      assertEquals((await call("set_cushion", { ...token, value: "120" })).result, "ok");
      assertEquals((await call("get_settings", token)).result.cushion, "120");
      assertMatch((await call("set_cushion", { ...token, value: "0" })).error!.message, /value/);
      assertMatch((await call("set_limits", { ...token, download: "-1" })).error!.message, /download/);
    }, { maxPeers: 33, cushion: "off" });
  } finally {
    await seeder.close();
  }
});

test("set_limits slows a download that runs", async () => {
  const bytes = new Uint8Array(3_000_000).map((_, n) => n * 7);
  const seeder = await seedFiles([{ path: "blob.bin", bytes }], { pieceLengthBytes: 65_536 });
  const served = await serveEngine({ accessToken: TOKEN });
  try {
    await (await fetch(`${served.url}/server/api?method=set_limits&token=${TOKEN}&download=1000000`)).text();
    const lease = served.engine.swarms.acquire({
      metainfo: seeder.metainfo,
      magnet: (await import("../../src/metainfo/magnet.ts")).parseMagnet(seeder.magnet),
    });
    lease.swarm.setDownloadAll(true);
    const began = performance.now();
    await lease.swarm.completed(AbortSignal.timeout(20_000));
    // 3 MB at 1 MB/s, minus what the bucket lets through at once.
    assert(performance.now() - began > 1000, `${performance.now() - began} ms`);
    lease.release();
  } finally {
    await served.close();
    await seeder.close();
  }
});

test("get_log answers the warnings and errors of the engine, the newest first", async () => {
  const directory = await temporaryDirectory();
  const ports = await loadPorts({ log: { level: "error" } });
  const silent = { log() {}, child: () => silent };
  const served = await serveOn({ ...ports, log: silent }, { accessToken: TOKEN, startTimeoutMs: 100 });
  try {
    const dead = `magnet:?xt=urn:btih:${"0".repeat(39)}1`;
    await (await fetch(`${served.url}/engine/getstream?magnet=${encodeURIComponent(dead)}`)).text();
    const { result } = await (await fetch(`${served.url}/server/api?method=get_log&token=${TOKEN}`)).json();
    assertEquals([result.lines[0].level, result.lines[0].message], ["warn", "a stream did not start"]);
    assertMatch(result.lines[0].detail, /start timeout/);
    assert(Math.abs(result.lines[0].time - Date.now() / 1000) < 60);
  } finally {
    await served.close();
    await directory.remove();
  }
});

test("RecentLog keeps the newest lines, shortened, and hands every line on", () => {
  const handed: string[] = [];
  const sink = { log: (level: string, message: string) => void handed.push(`${level} ${message}`), child: () => sink };
  const clock = new FakeClock();
  const recent = new RecentLog(clock);
  const log = recent.over(sink).child({ swarm: "s" });
  log.log("info", "not kept");
  for (let n = 0; n < MAX_LOG_LINES + 50; n++) log.log("warn", `line ${n}`, { n });
  log.log("error", "x".repeat(10_000), { error: new MillraceError("io", "the disk is gone") });
  const lines = recent.lines();
  assertEquals([lines.length, handed.length], [MAX_LOG_LINES, MAX_LOG_LINES + 52]);
  assertEquals([lines[0]!.message.length, lines[0]!.level], [MAX_LINE_CHARS, "error"]);
  assertMatch(lines[0]!.detail, /^swarm=s error=.*the disk is gone/);
  assertEquals(lines[1], {
    atMs: clock.now(),
    level: "warn",
    message: `line ${MAX_LOG_LINES + 49}`,
    detail: lines[1]!.detail,
  });
});
