/** `millrace doctor`: its findings, its advice, and its exit code. */
import dgram from "node:dgram";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { examine } from "../../platform/doctor/doctor.ts";
import { parseConfig } from "../../src/config.ts";
import { DhtNode } from "../../src/discovery/dht-node.ts";
import { startHttpTracker } from "../discovery/support/http-tracker.ts";
import { startProxy } from "../support/proxy.ts";
import { quietFlags, run, start, withDirectory } from "./support.ts";

interface Found {
  readonly check: string;
  readonly state: "ok" | "warning" | "trouble";
  readonly found: string;
  readonly remedy: string | null;
}

async function doctor(args: readonly string[], env: Record<string, string> = {}) {
  const { code, stdout, stderr } = await run(["doctor", "--json", ...args], env);
  assertEquals(stderr, "");
  const findings: Found[] = stdout.trim().split("\n").map((line) => JSON.parse(line));
  const of = (check: string) => findings.find((finding) => finding.check === check)!;
  for (const { state, remedy } of findings) assertEquals(remedy === null, state === "ok", stdout);
  return { code, findings, of };
}

test("millrace doctor finds nothing in the way, and exits with 0, when all is there", () =>
  withDirectory(async (directory) => {
    const { code, of } = await doctor(quietFlags(directory));
    assertEquals(code, 0);
    assertEquals(of("HTTP port").state, "ok");
    assertEquals(of("peer port").state, "ok");
    assertEquals(of("state directory"), {
      check: "state directory",
      state: "ok",
      found: path.join(directory, "state"),
      remedy: null,
    });
    assert(of("cache").state !== "trouble", of("cache").found);
    assertMatch(of("database").found, /none yet/);
    assertEquals(of("DHT").state, "warning");
  }));

test("millrace doctor names the port, what to do, and exits with 3, when another program has it", () =>
  withDirectory(async (directory) => {
    const server = net.createServer((connection) => connection.destroy());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const port = String((server.address() as net.AddressInfo).port);
    try {
      const http = await doctor([...quietFlags(directory), "--http-port", port]);
      assertEquals([http.code, http.of("HTTP port").state], [3, "trouble"]);
      assertMatch(http.of("HTTP port").found, new RegExp(port));
      assertMatch(http.of("HTTP port").remedy!, /--http-port/);
      const peers = await doctor([...quietFlags(directory), "--peer-port", port]);
      assertEquals([peers.code, peers.of("peer port").state], [3, "trouble"]);
      assertMatch(peers.of("peer port").remedy!, /--peer-port/);
    } finally {
      server.close();
    }
  }));

test("millrace doctor reports a running engine as ready, and does not disturb it", () =>
  withDirectory(async (directory) => {
    const free = net.createServer();
    await new Promise<void>((resolve) => free.listen(0, "127.0.0.1", resolve));
    const port = String((free.address() as net.AddressInfo).port);
    await new Promise((resolve) => free.close(resolve));
    const flags = [...quietFlags(directory), "--http-port", port];
    const engine = start(["serve", ...flags]);
    await engine.firstLine;
    const { code, of } = await doctor(flags);
    assertEquals([code, of("HTTP port").found], [0, `an engine runs at http://127.0.0.1:${port}: ready`]);
    assertEquals((await fetch(`http://127.0.0.1:${port}/healthz`)).status, 200);
    engine.kill("SIGTERM");
    assertEquals((await engine.ended).code, 0);
  }));

test("millrace doctor says what to do when ffmpeg is missing, the database is damaged and a directory is a file", () =>
  withDirectory(async (directory) => {
    mkdirSync(path.join(directory, "state"), { recursive: true });
    writeFileSync(path.join(directory, "state", "millrace.db"), "no database ".repeat(1000));
    writeFileSync(path.join(directory, "file"), "");
    const flags = [...quietFlags(directory), "--cache-dir", path.join(directory, "file", "inside")];
    const { code, of } = await doctor(flags, { PATH: directory });
    assertEquals(code, 3);
    assertEquals(of("ffmpeg").state, "warning");
    assertMatch(of("ffmpeg").found, /^not found: /);
    assertMatch(of("ffmpeg").remedy!, /install ffmpeg/);
    assertEquals(of("database").state, "trouble");
    assertMatch(of("database").remedy!, /damaged file/);
    assertEquals(of("cache").state, "trouble");
    assertMatch(of("cache").remedy!, /--cache-dir/);
  }));

test("millrace doctor warns when an ffmpeg cannot make AAC", () =>
  withDirectory(async (directory) => {
    const program = path.join(directory, "ffmpeg");
    writeFileSync(program, "#!/bin/sh\necho ffmpeg version 0.1-test\n");
    chmodSync(program, 0o755);
    const { of } = await doctor(quietFlags(directory), { PATH: `${directory}:/usr/bin:/bin` });
    assertEquals(of("ffmpeg").state, "warning");
    assertMatch(of("ffmpeg").found, /0\.1-test has no AAC encoder/);
  }));

test("millrace doctor asks the DHT and the trackers, and reports which answer and which do not", () =>
  withDirectory(async (directory) => {
    const node = await DhtNode.open(await loadPorts({ log: { level: "error" } }), {
      bootstrap: [],
      statePath: null,
      host: "127.0.0.1",
      port: 0,
    });
    const good = await startHttpTracker((_announce, response) => response.end("d8:intervali1800e5:peers0:e"));
    const bad = await startHttpTracker((_announce, response) => response.end("d14:failure reason4:nonee"));
    try {
      const flags = quietFlags(directory).filter((flag) => flag !== "--no-dht");
      const { findings, of } = await doctor([
        ...flags,
        "--dht-bootstrap",
        `127.0.0.1:${node.port}`,
        ...["--tracker", `${good.origin}/announce`, "--tracker", `${bad.origin}/announce`],
      ]);
      assertEquals(of("DHT"), { check: "DHT", state: "ok", found: "nodes answer", remedy: null });
      const trackers = findings.filter(({ check }) => check === "tracker");
      assertEquals(trackers.map(({ state }) => state), ["ok", "warning"]);
      assertMatch(trackers[1]!.found, /none/);
    } finally {
      await good.close();
      await bad.close();
      await node.close();
    }
  }));

test("millrace doctor says that the DHT does not answer when its nodes are silent, and still ends", () =>
  withDirectory(async (directory) => {
    // A socket that takes everything and never answers.
    const silent = dgram.createSocket("udp4");
    await new Promise<void>((resolve) => silent.bind(0, "127.0.0.1", resolve));
    try {
      const flags = quietFlags(directory).filter((flag) => flag !== "--no-dht");
      const args = ["doctor", ...flags, "--dht-bootstrap", `127.0.0.1:${silent.address().port}`];
      const findings: Found[] = [];
      const ports = await loadPorts({ log: { level: "error" } });
      // In this test all that answer do so at once.
      for await (const finding of examine(parseConfig({ args, env: {} }), ports, AbortSignal.timeout(1500))) {
        findings.push(finding);
      }
      const dht = findings.find(({ check }) => check === "DHT")!;
      assertEquals(dht.state, "trouble");
      assertMatch(dht.remedy!, /firewall/);
    } finally {
      silent.close();
    }
  }));

test("millrace doctor asks the proxy itself, and sends nothing beside it", () =>
  withDirectory(async (directory) => {
    const proxy = await startProxy({ credentials: { user: "user", password: "pass" } });
    const tracker = await startHttpTracker((_announce, response) => response.end("d8:intervali1800e5:peers0:e"));
    const flags = [...quietFlags(directory), "--tracker", `${tracker.origin}/announce`];
    try {
      const { code, of } = await doctor([...flags, "--proxy", proxy.url]);
      assertEquals([code, of("proxy").state, of("tracker").state], [0, "warning", "ok"]);
      assertMatch(of("proxy").found, /^socks5:\/\/127\.0\.0\.1:\d+ answers; the proxy passes no UDP on/);
      assertMatch(of("port mapping").found, /off/);
      assertEquals(new Set(proxy.asked), new Set([new URL(tracker.origin).host]));
      const announces = tracker.seen.length;
      const wrong = await doctor([...flags, "--proxy", proxy.url.replace("pass@", "word@")]);
      assertEquals([wrong.code, wrong.of("proxy").state, wrong.of("tracker").state], [3, "trouble", "warning"]);
      assertMatch(wrong.of("proxy").found, /refuses the user or the password/);
      assertEquals(tracker.seen.length, announces);
    } finally {
      await proxy.close();
      await tracker.close();
    }
  }));

test("millrace doctor says whether the interface is there, and asks nobody while it is away", () =>
  withDirectory(async (directory) => {
    const tracker = await startHttpTracker((_announce, response) => response.end("d8:intervali1800e5:peers0:e"));
    const flags = [...quietFlags(directory), "--tracker", `${tracker.origin}/announce`];
    try {
      const here = await doctor([...flags, "--interface", "127.0.0.1"]);
      assertEquals([here.code, here.of("tracker").state], [0, "ok"]);
      assertEquals(here.of("interface").found, "127.0.0.1 has 127.0.0.1");
      assertMatch(here.of("port mapping").found, /off/);
      assertEquals(tracker.seen.length > 0, true);
      const announces = tracker.seen.length;
      const away = await doctor([...flags, "--interface", "none0"]);
      assertEquals([away.code, away.of("interface").state, away.of("tracker").state], [3, "trouble", "warning"]);
      assertMatch(away.of("interface").found, /none0 .*away/);
      assertEquals(tracker.seen.length, announces);
    } finally {
      await tracker.close();
    }
  }));
