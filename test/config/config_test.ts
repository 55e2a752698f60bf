import { test } from "node:test";
import { assert, assertEquals, assertThrows } from "@std/assert";
import { configPath, helpText, misspeltVariables, optionsTable, parseConfig } from "../../src/config.ts";
import { MillraceError } from "../../src/errors.ts";

const parse = (args: string[], env: Record<string, string> = {}, text?: string) =>
  parseConfig({ args, env, file: text === undefined ? null : { path: "/etc/m.json", text } });

function messageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    assert(error instanceof MillraceError, String(error));
    assertEquals(error.code, "config");
    assert(!/[\n\r]/.test(error.message), "one line");
    return error.message;
  }
  throw new Error("nothing was thrown");
}

test("parseConfig() returns the documented defaults when nothing is set", () => {
  const config = parse([]);
  assertEquals(config.command, "serve");
  assertEquals([config.httpHost, config.httpPort, config.peerHost, config.peerPort], [
    "127.0.0.1",
    6878,
    null,
    8621,
  ]);
  assertEquals([config.cache, config.cacheLimitBytes], ["disk", 10 * 2 ** 30]);
  assertEquals([config.dht, config.lsd, config.pex], [true, true, true]);
  assertEquals([config.stateDir, config.cacheDir, config.publicUrl], [null, null, null]);
  assertEquals(config.startTimeoutMs, 60_000);
});

test("parseConfig() reads every kind of value from flags", () => {
  const config = parse([
    ..."demo --once --http-port=0 --bind-all --allowed-host tv.local --allowed-host=a,b --cache ram".split(" "),
    ..."--download-limit 2MB/s --upload-limit 16Mbit/s --start-timeout 1.5s --no-dht --log-format json".split(" "),
    ..."--public-url https://tv.example/base/ --peer-host [::1] --tracker udp://t.example:6969/announce".split(" "),
  ]);
  assertEquals([config.command, config.once, config.httpPort, config.bindAll], ["demo", true, 0, true]);
  assertEquals(config.allowedHosts, ["tv.local", "a", "b"]);
  assertEquals([config.cache, config.cacheLimitBytes], ["ram", 512 * 2 ** 20]);
  assertEquals([config.downloadLimitBytesPerSecond, config.uploadLimitBytesPerSecond], [2_000_000, 2_000_000]);
  assertEquals([config.startTimeoutMs, config.dht, config.lsd], [1500, false, true]);
  assertEquals([config.publicUrl, config.peerHost], ["https://tv.example/base", "::1"]);
  assertEquals(config.trackers, ["udp://t.example:6969/announce"]);
});

test("parseConfig() lets flags win over variables and variables over the file", () => {
  const file = JSON.stringify({
    "http-port": 1,
    peerPort: 2,
    "max-peers": 3,
    "no-lsd": true,
    tracker: ["http://a/x", "http://b/y"],
  });
  const env = { MILLRACE_HTTP_PORT: "11", MILLRACE_PEER_PORT: "12", MILLRACE_NO_PEX: "1", MILLRACE_VERSION: "7" };
  const config = parse(["--http-port", "21"], env, file);
  assertEquals([config.httpPort, config.peerPort, config.maxPeers], [21, 12, 3]);
  assertEquals([config.lsd, config.pex, config.dht], [false, false, true]);
  assertEquals(config.trackers, ["http://a/x", "http://b/y"]);
});

test("parseConfig() reports an error in one line", () => {
  const table: [string[], Record<string, string>, string | undefined, string][] = [
    [["--htp-port", "1"], {}, undefined, "unknown option --htp-port; did you mean --http-port?"],
    [["--frobnicate"], {}, undefined, "unknown option --frobnicate; see --help"],
    [["-x"], {}, undefined, "unknown option -x; see --help"],
    [["--http-port"], {}, undefined, "--http-port needs a value (PORT)"],
    [["--http-port", "65536"], {}, undefined, '--http-port needs a whole number from 0 to 65535, not "65536"'],
    [["--piecesize", "10000"], {}, undefined, '--piecesize needs a multiple of 16KiB up to 1MiB, not "10000"'],
    [["--piecesize", "2MiB"], {}, undefined, '--piecesize needs a multiple of 16KiB up to 1MiB, not "2MiB"'],
    [["--cache", "tape"], {}, undefined, '--cache needs disk or ram, not "tape"'],
    [
      ["--cache-limit", "12 parsecs"],
      {},
      undefined,
      '--cache-limit needs a size such as 512MiB or 2GB, not "12 parsecs"',
    ],
    [["--cache-limit", "5"], {}, undefined, "--cache-limit needs a unit: 5 alone is 5 bytes; did you mean 5GiB?"],
    [[], { MILLRACE_CACHE_LIMIT: "512" }, undefined, "MILLRACE_CACHE_LIMIT needs a unit: 512 alone is 512 bytes"],
    [["--upload-limit", "2"], {}, undefined, "--upload-limit needs a unit: 2 alone is 2 bytes; did you mean 2MB/s?"],
    [["--start-timeout=soon"], {}, undefined, '--start-timeout needs a time such as 30s or 2m, not "soon"'],
    [["--public-url", "ftp://x"], {}, undefined, '--public-url needs an absolute http, https URL, not "ftp://x"'],
    [["--dht-bootstrap", "router"], {}, undefined, '--dht-bootstrap needs host:port, not "router"'],
    [["--no-dht=maybe"], {}, undefined, '--no-dht needs true or false, not "maybe"'],
    [["play"], {}, undefined, 'unknown command "play"; see --help'],
    [["serve", "now"], {}, undefined, 'unexpected argument "now"; see --help'],
    [[], { MILLRACE_MAX_PEERS: "0" }, undefined, 'MILLRACE_MAX_PEERS needs a whole number from 1 to 10000, not "0"'],
    [[], {}, "[]", "/etc/m.json must hold one JSON object"],
    [[], {}, '{"port": 1}', '/etc/m.json: key "port"'],
    [[], {}, '{"once": true}', '/etc/m.json: key "once"'],
    [[], {}, '{"max-peers": {}}', '/etc/m.json: "max-peers" needs a text, a number or a boolean'],
    [[], {}, "{", "/etc/m.json is not valid JSON"],
  ];
  for (const [args, env, file, message] of table) {
    const got = messageOf(() => parse(args, env, file));
    assert(got.includes(message), `${got} does not say ${message}`);
  }
});

test("parseConfig() reads where a Kodi is, and repeats no password in its error", () => {
  const given = ["kodi:p%2Fw@192.168.1.20:8081", "tv.lan"];
  assertEquals(parse(["--kodi", given[0]!, "--kodi", given[1]!]).kodis, given);
  assertEquals(parse([], { MILLRACE_KODI: given.join(",") }).kodis, given);
  for (const wrong of ["kodi:secret/@tv", "kodi:secret@", "kodi:secret@tv:99999", "http://kodi:secret@tv"]) {
    const got = messageOf(() => parse(["--kodi", wrong]));
    assert(got.includes("--kodi needs [user:password@]host[:port]") && !got.includes("secret"), got);
  }
});

test("parseConfig() reads sizes, rates and times with their units", () => {
  for (
    const [text, bytes] of [["0", 0], ["512MiB", 2 ** 29], ["1.5 GB", 1.5e9], ["10kb", 1e4], ["2TiB", 2 ** 41], [
      "2000000",
      2e6,
    ]] as const
  ) assertEquals(parse(["--cache-limit", text]).cacheLimitBytes, bytes, text);
  for (
    const [text, rate] of [["2000", 2000], ["100B/s", 100], ["1MiB/s", 2 ** 20], ["8kbit/s", 1000], [
      "8Mbit/s",
      1e6,
    ]] as const
  ) {
    assertEquals(parse(["--download-limit", text]).downloadLimitBytesPerSecond, rate, text);
  }
  for (const [text, ms] of [["45", 45_000], ["250ms", 250], ["2m", 120_000], ["1h", 3_600_000]] as const) {
    assertEquals(parse(["--start-timeout", text]).startTimeoutMs, ms, text);
  }
  for (const [text, cushion] of [["auto", "auto"], ["Off", "off"], ["90", 90], ["2m", 120]] as const) {
    assertEquals(parse(["--cushion", text]).cushion, cushion, text);
  }
  for (const text of ["0", "500ms", "3h", "on"]) assertThrows(() => parse(["--cushion", text]), MillraceError, "2h");
});

test("parseConfig() returns help and version even when other arguments are wrong", () => {
  assertEquals(parse(["--help", "demo"]).command, "help");
  assertEquals(parse(["--version"]).command, "version");
  assertEquals(parse(["help"]).command, "help");
});

test("misspeltVariables() names the variables that have no effect, and the nearest option", () => {
  const env = { MILLRACE_HTTP_PORT: "1", MILLRACE_CACHE_LIMTI: "5GB", MILLRACE_ONCE: "1", PATH: "/bin", MILLRACE: "x" };
  assertEquals(misspeltVariables(env), [
    "unknown variable MILLRACE_CACHE_LIMTI has no effect; did you mean MILLRACE_CACHE_LIMIT?",
    "unknown variable MILLRACE_ONCE has no effect; see --help",
  ]);
  const many = Object.fromEntries(Array.from({ length: 99 }, (_, i) => [`MILLRACE_\n${"X".repeat(200)}${i}`, ""]));
  const lines = misspeltVariables(many);
  assert(lines.length === 10 && lines.every((line) => line.length < 150 && !line.includes("\n")), lines[0]);
});

test("configPath() finds the file in flags and variables", () => {
  assertEquals(configPath({ args: ["--config", "/a.json"], env: { MILLRACE_CONFIG: "/b.json" } }), "/a.json");
  assertEquals(configPath({ args: [], env: { MILLRACE_CONFIG: "/b.json" } }), "/b.json");
  assertEquals(configPath({ args: [], env: {} }), null);
});

test("helpText() and optionsTable() name every public option and no hidden one", () => {
  const flags = [
    ..."http-host http-port bind-all allowed-host public-url trust-proxy path-alias peer-host peer-port".split(" "),
    ..."state-dir cache-dir cache cache-limit download-limit upload-limit max-peers tracker dht-bootstrap no-dht".split(
      " ",
    ),
    ..."no-lsd no-pex no-utp start-timeout log-level log-format config".split(" "),
  ];
  for (const flag of flags) {
    assert(helpText().includes(`  --${flag}`), flag);
    assert(optionsTable().includes(`\`--${flag}`), flag);
  }
  assert(!helpText().includes("--file"));
  for (const row of optionsTable().split("\n")) assertEquals(row.replaceAll("\\|", "").split("|").length, 6, row);
});

test("parseConfig() survives random input with nothing but config errors", () => {
  let seed = 0x2545f491;
  const random = (n: number) => {
    seed ^= seed << 13;
    seed ^= seed >>> 17;
    seed ^= seed << 5;
    return (seed >>> 0) % n;
  };
  const words = [
    "--",
    "-",
    "--=",
    "--http-port",
    "--cache-limit=9e99GiB",
    "999999999999999TiB",
    "\u0000",
    "\n--help",
    "ram",
    "--tracker",
    ",,,",
    "http://[",
    "--no-dht",
    "--__proto__",
    "constructor",
    "--cache-limit",
    "12constructor",
    "x".repeat(10_000),
  ];
  const files = [
    "{}",
    '{"__proto__":1}',
    '{"tracker":[[["http://a"]]]}',
    '{"tracker":[null,{}]}',
    "[".repeat(50_000),
    '{"cache":"ram"',
    "null",
  ];
  for (let round = 0; round < 2000; round++) {
    const args = Array.from({ length: random(5) }, () => words[random(words.length)]!);
    const env = random(2) ? { MILLRACE_TRACKER: words[random(words.length)]! } : {};
    try {
      parse(args, env as Record<string, string>, random(3) === 0 ? files[random(files.length)] : undefined);
    } catch (error) {
      assert(error instanceof MillraceError && error.code === "config" && !error.message.includes("\n"), String(error));
    }
  }
});

test("parseConfig() reads the options of broadcast and relay", () => {
  const config = parse([
    ..."broadcast --source - --name news --title=News --bitrate 4Mbit/s --piecesize 128KiB --publish-dir /srv".split(
      " ",
    ),
    ..."--private --live-window 2m --json --once --upload-limit 1MB/s".split(" "),
  ]);
  assertEquals([config.command, config.source, config.name, config.title], ["broadcast", "-", "news", "News"]);
  assertEquals([config.bitrateBytesPerSecond, config.pieceLengthBytes], [500_000, 131_072]);
  assertEquals([config.publishDir, config.private, config.json, config.once], ["/srv", true, true, true]);
  assertEquals([config.liveWindowMs, config.uploadLimitBytesPerSecond], [120_000, 1_000_000]);
  assertEquals([parse(["relay"], { MILLRACE_URL: "a.torrent" }).url, parse([]).source], ["a.torrent", null]);
});

test("--front takes names, each with a port of its own or without", () => {
  assertEquals(parse(["--front", "torrserver=8090", "--front", "dlna"]).fronts, [
    { name: "torrserver", port: 8090 },
    { name: "dlna", port: null },
  ]);
  assertEquals(parse([], { MILLRACE_FRONT: "dlna,torrserver=0" }).fronts.map(({ port }) => port), [null, 0]);
  for (const value of ["torrserver=", "torrserver=70000", "other=1", "other"]) {
    assert(messageOf(() => parse(["--front", value])).startsWith("--front needs "), value);
  }
});
