import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { until } from "../support/until.ts";
import { quietFlags, run, SOURCES, start, withDirectory } from "./support.ts";
import { ownMs } from "../support/held-up.ts";

const READY = /^ready (http:\/\/127\.0\.0\.1:\d+) peers 127\.0\.0\.1:\d+$/;

async function taken(body: (port: string) => Promise<void>): Promise<void> {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await body(String((server.address() as net.AddressInfo).port));
  } finally {
    server.close();
  }
}

function assertOneLine(stderr: string, says: RegExp): void {
  assertEquals(stderr.trimEnd().split("\n").length, 1, stderr);
  assertMatch(stderr, says);
}

test("millrace --help and --version answer on standard output", async () => {
  const [help, version] = await Promise.all([run(["--help"]), run(["--version"])]);
  assertEquals([help.code, help.stderr], [0, ""]);
  assert(help.stdout.includes("--http-port PORT"));
  assertEquals(version.code, 0);
  assertMatch(version.stdout, /^millrace \d+\.\d+\.\d+\n$/);
});

test("millrace refuses a wrong flag, variable, command or file with one line and exit code 2", () =>
  withDirectory(async (directory) => {
    const file = path.join(directory, "config.json");
    writeFileSync(file, '{"http-prot": 1}');
    const outcomes = await Promise.all([
      run(["--frob"]),
      run(["serve"], { MILLRACE_HTTP_PORT: "many" }),
      run(["juggle"]),
      run(["--config", file]),
      run(["--config", path.join(directory, "missing.json")]),
    ]);
    const says = [/--frob/, /MILLRACE_HTTP_PORT/, /juggle/, /http-prot/, /missing\.json \(ENOENT\)/];
    outcomes.forEach(({ code, stdout, stderr }, i) => {
      assertEquals([code, stdout], [2, ""]);
      assertOneLine(stderr, says[i]!);
    });
  }));

test("millrace serve says when it is ready, answers, and ends in order on SIGTERM and SIGINT", () =>
  withDirectory(async (directory) => {
    for (const [signal, script] of [["SIGTERM", undefined], ["SIGINT", SOURCES]] as const) {
      const program = start(["serve", ...quietFlags(directory)], {}, undefined, undefined, script);
      const match = READY.exec(await program.firstLine);
      assert(match !== null, await program.firstLine);
      const got = await fetch(`${match[1]}/webui/api/service?method=get_version`);
      assertEquals(got.status, 200);
      assert(JSON.stringify(await got.json()).includes("version"));
      program.kill(signal);
      const tookMs = await ownMs(() => program.ended);
      const { code, stdout, stderr } = await program.ended;
      assertEquals([code, stderr], [0, ""]);
      assertEquals(stdout.trimEnd().split("\n").length, 1, stdout);
      assert(tookMs < 3000, "it took more than 3 s to end");
    }
    assert(existsSync(path.join(directory, "state")));
  }));

test("millrace serve logs exceptions that nobody caught, with their stacks, and goes on", () =>
  withDirectory(async (directory) => {
    const flags = ["serve", ...quietFlags(directory)];
    const program = start(flags, {}, undefined, undefined, fileURLToPath(new URL("faulty-main.ts", import.meta.url)));
    const match = READY.exec(await program.firstLine);
    assert(match !== null, await program.firstLine);
    const faults = ["a timer", "a microtask", "a promise", "a datagram", "a connection"];
    const isLogged = (fault: string) => program.stderr().includes(`TypeError: a fault in ${fault}`);
    await until("all faults are logged", () => faults.every(isLogged));
    assertMatch(program.stderr(), /error an error was not handled code=internal .*faulty-main\.ts/);
    assertEquals((await fetch(`${match[1]}/webui/api/service?method=get_version`)).status, 200);
    program.kill("SIGTERM");
    assertEquals((await program.ended).code, 0);
  }));

test("millrace serve goes on when nobody reads what it prints any more", () =>
  withDirectory(async (directory) => {
    const program = start(["serve", ...quietFlags(directory), "--log-level", "debug"]);
    const match = READY.exec(await program.firstLine);
    program.child.stdout!.destroy();
    program.child.stderr!.destroy();
    const status = async () => (await fetch(`${match![1]}/webui/api/service?method=get_version`)).status;
    // Each is logged.
    for (let i = 0; i < 20; i++) assertEquals(await status(), 200);
    program.kill("SIGTERM");
    assertEquals((await program.ended).code, 0);
  }));

test("millrace serve prints the ready line as JSON and logs as JSON when asked to", () =>
  withDirectory(async (directory) => {
    const program = start([...quietFlags(directory), "--log-level", "debug"], { MILLRACE_LOG_FORMAT: "json" });
    const ready = JSON.parse(await program.firstLine);
    assertEquals(ready.event, "ready");
    assertMatch(ready.http, /^http:\/\/127\.0\.0\.1:\d+$/);
    assertMatch(ready.peers, /^127\.0\.0\.1:\d+$/);
    program.kill("SIGTERM");
    const { code, stderr } = await program.ended;
    assertEquals(code, 0);
    for (const line of stderr.split("\n")) if (line !== "") assert(typeof JSON.parse(line).message === "string", line);
  }));

test("millrace warns of a misspelt variable and goes on", async () => {
  const { code, stderr } = await run(["token", "shwo"], { MILLRACE_HTTP_PROT: "1" });
  assertEquals(code, 2);
  assertMatch(stderr, /unknown variable MILLRACE_HTTP_PROT has no effect; did you mean MILLRACE_HTTP_PORT\?/);
});

test("millrace serve reads its configuration file", () =>
  withDirectory(async (directory) => {
    const file = path.join(directory, "config.json");
    const flags = quietFlags(directory);
    writeFileSync(file, JSON.stringify({ "log-format": "json", cache: "ram", "bind-all": true }));
    const program = start([...flags, "--config", file]);
    const ready = JSON.parse(await program.firstLine);
    assertEquals((await fetch(`${ready.http}/webui/api/service?method=get_version`)).status, 200);
    program.kill("SIGTERM");
    assertEquals((await program.ended).code, 0);
  }));

test("millrace serve ends readers cleanly: a stream that is being read does not hold it up", () =>
  withDirectory(async (directory) => {
    const program = start([...quietFlags(directory), "--start-timeout", "60s"]);
    const base = READY.exec(await program.firstLine)![1];
    // Nobody has this torrent, so the request waits for metadata until the engine closes.
    const waiting = fetch(`${base}/engine/getstream?infohash=${"0".repeat(40)}`).then((r) => r.text(), () => "");
    await new Promise((resolve) => setTimeout(resolve, 100));
    program.kill("SIGTERM");
    const tookMs = await ownMs(() => program.ended);
    assertEquals((await program.ended).code, 0);
    assert(tookMs < 3000, "it took more than 3 s to end");
    await waiting;
  }));

test("millrace serve refuses a taken HTTP or peer port with one line and exit code 2", () =>
  withDirectory((directory) =>
    taken(async (port) => {
      const http = run([...quietFlags(path.join(directory, "a")), "--http-port", port]);
      const peers = run([...quietFlags(path.join(directory, "b")), "--peer-port", port]);
      for (const { code, stdout, stderr } of await Promise.all([http, peers])) {
        assertEquals([code, stdout], [2, ""], stderr);
        assertOneLine(stderr, new RegExp(`127\\.0\\.0\\.1:${port} is taken`));
      }
    })
  ));

test("millrace serve refuses a directory that it cannot write to with one line and exit code 2", () =>
  withDirectory(async (directory) => {
    const file = path.join(directory, "file");
    writeFileSync(file, "");
    for (const flag of ["--state-dir", "--cache-dir"]) {
      const { code, stdout, stderr } = await run([...quietFlags(directory), flag, path.join(file, "inside")]);
      assertEquals([code, stdout], [2, ""]);
      assertOneLine(stderr, new RegExp(`${flag}: cannot write to .*inside`));
    }
  }));

test("millrace serve ends at once on a second signal", () =>
  withDirectory(async (directory) => {
    const program = start([...quietFlags(directory)]);
    await program.firstLine;
    program.kill("SIGINT");
    program.kill("SIGINT");
    const { code } = await program.ended;
    // The first signal may have been enough.
    assert(code === 130 || code === 0, `exit code ${code}`);
  }));

test("millrace demo --once plays the clip from a second process through both outputs", async () => {
  const { code, stdout, stderr } = await run(["demo", "--once", "--http-port", "0", "--peer-port", "0"]);
  assertEquals([code, stderr], [0, ""], stdout);
  assertMatch(stdout, /^ready /);
  assertMatch(stdout, /MPEG TS: \d+ bytes, .* good/);
  assertMatch(stdout, /HLS: +\d+ bytes in \d+ segments, .* good/);
  // The sample in the README is what is printed, but for ports and the end of long addresses.
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  const sample = /\$ npx -y deno task demo --once\n([\s\S]*?)```/.exec(readme)![1]!.trim().split("\n");
  const withoutPorts = (line: string) => line.replace(/127\.0\.0\.1:\d+/g, "127.0.0.1:PORT");
  const printed = stdout.split("\n").map(withoutPorts).filter((line) => /^(?:ready|MPEG TS:|HLS:)/.test(line));
  assertEquals(sample.length, printed.length, stdout);
  for (const [at, line] of sample.map(withoutPorts).entries()) {
    const [begins, isCut] = [line.replace(/…$/, ""), line.endsWith("…")];
    assertEquals(isCut ? printed[at]!.slice(0, begins.length) : printed[at], begins);
  }
});

test("require-node.mjs says which Node npm scripts need, in place of a stack", async () => {
  const program = new URL("../../scripts/require-node.mjs", import.meta.url).href;
  const older = (version: string) =>
    new Promise<[number | null, string]>((resolve) => {
      const versions = `{ ...process.versions, node: "${version}" }`;
      const code = `Object.defineProperty(process, "versions", { value: ${versions} }); import("${program}");`;
      const child = spawn("node", ["-e", code]);
      let said = "";
      child.stderr.on("data", (chunk) => said += chunk);
      child.on("close", (status) => resolve([status, said]));
    });
  const [code, said] = await older("20.11.0");
  assertEquals(code, 2);
  assertMatch(said, /^this needs Node 22\.18 or newer, and this is 20\.11\.0: .*\n$/);
  assertEquals([await older("22.18.0"), await older("24.0.1")], [[0, ""], [0, ""]]);
});

test("millrace demo prints URLs and progress until it is stopped", async () => {
  const program = start(["demo", "--http-port", "0", "--peer-port", "0"]);
  await program.firstLine;
  let seen = "";
  await new Promise<void>((resolve) => {
    program.child.stdout!.on("data", (chunk) => {
      seen += chunk;
      if (/peers, .* downloaded/.test(seen)) resolve();
    });
    void program.ended.then(() => resolve());
  });
  program.kill("SIGINT");
  const { code, stdout, stderr } = await program.ended;
  assertEquals([code, stderr], [0, ""], stdout);
  assertMatch(stdout, /MPEG TS: http:\/\/127\.0\.0\.1:\d+\/engine\/getstream\?/);
  assertMatch(stdout, /HLS: +http:\/\/127\.0\.0\.1:\d+\/engine\/manifest\.m3u8\?/);
  assertMatch(stdout, /peers, \d+ KB\/s down, \d+ bytes downloaded/);
});
