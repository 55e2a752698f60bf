/** What other engines may do here: nothing but play, signed, once each, and only after a person allowed it. */
import { test } from "node:test";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { CastIdentity, isSignedBy, randomNonce } from "../../src/players/engines/cast-identity.ts";
import { CastReceiver } from "../../src/players/engines/cast-receiver.ts";
import { CastRelay } from "../../src/players/engines/cast-relay.ts";
import { CastSenders } from "../../src/players/engines/cast-senders.ts";
import { describeEngine } from "../../src/players/engines/engine-finder.ts";
import { EnginePlayer } from "../../src/players/engines/engine-player.ts";
import { helloText } from "../../src/players/engines/cast-command.ts";
import { Players } from "../../src/players/players.ts";
import { MemoryFiles } from "../storage/memory-files.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { silent } from "../support/fault-log.ts";
import { FakeStream, RememberingPlayer, Shelf } from "./support.ts";

const { signal } = new AbortController();
const HOST = "192.168.7.9";
const URL_THERE = `http://${HOST}:6878/engine/f/x/1/film.mkv`;
const codeOf = async (work: () => Promise<unknown>) => (await assertRejects(work, MillraceError)).code;

/** A receiver with one player, and a sender that it knows nothing of. */
async function room() {
  const clock = new FakeClock();
  const files = new MemoryFiles(clock);
  const ports = { clock, files, log: silent };
  const [identity, sender] = await Promise.all([CastIdentity.load(ports, null), CastIdentity.load(ports, null)]);
  const senders = await CastSenders.load(ports, "/state", []);
  const mpv = new RememberingPlayer("program:mpv", { localOnly: true });
  const choices = [new Shelf(mpv)];
  const players = new Players(choices, ports);
  const relay = new CastRelay({ clock, fetch });
  const receiver = new CastReceiver({ identity, senders, players, choices, playerId: null, relay, clock });
  const greet = async (host = HOST) =>
    (await receiver.hello(host, "192.168.7.5:6878", JSON.stringify({ challenge: randomNonce() }))).nonce;
  const bodyOf = (nonce: string, action: unknown) =>
    JSON.stringify({ sender: sender.key, nonce, name: "Study\u0007", action });
  /** Signs and sends as an honest sender does. */
  const command = async (action: unknown, host = HOST) => {
    const body = bodyOf(await greet(host), action);
    return await receiver.command(host, body, await sender.sign("command", identity.key, body), signal);
  };
  return { clock, files, ports, identity, sender, senders, mpv, players, receiver, greet, bodyOf, command };
}
const OPEN = { kind: "open", url: URL_THERE, output: "file", title: "Film\u001b", isLive: false };

test("CastIdentity keeps its key in the state directory, sets a damaged file aside, and signs for one receiver and purpose", async () => {
  const clock = new FakeClock();
  const ports = { clock, files: new MemoryFiles(clock), log: silent };
  const first = await CastIdentity.load(ports, "/state");
  assertEquals((await CastIdentity.load(ports, "/state")).key, first.key);
  const signature = await first.sign("command", "r", "text");
  const is = (key: string, ...rest: [string, "command" | "hello", string, string]) => isSignedBy(key, ...rest);
  assert(await is(first.key, signature, "command", "r", "text"));
  assert(!await is(first.key, signature, "hello", "r", "text"));
  assert(!await is(first.key, signature, "command", "s", "text"));
  assert(!await is(first.key, signature, "command", "r", "texts"));
  assert(!await is("0".repeat(64), signature, "command", "r", "text"));
  for (const wrong of ["", "zz".repeat(64), "00".repeat(64)]) {
    assert(!await is(first.key, wrong, "command", "r", "text"));
    assert(!await is(wrong, signature, "command", "r", "text"));
  }
  await ports.files.writeFile("/state/cast-key", new Uint8Array([1, 2, 3]));
  const second = await CastIdentity.load(ports, "/state");
  assert(second.key !== first.key && [...ports.files.nodes.keys()].some((path) => path.includes(".damaged-")));
});

test("CastReceiver plays nothing from an engine that was not allowed, and asks the user once", async () => {
  const { command, senders, sender, mpv } = await room();
  assertEquals(await codeOf(() => command({ kind: "status" })), "denied");
  assertEquals(senders.pending(), [], "only what wants to play is shown to the user");
  for (let n = 0; n < 3; n++) assertEquals(await codeOf(() => command(OPEN)), "denied");
  assertEquals(senders.pending().map(({ key, name, host }) => [key, name, host]), [[sender.key, "Study", HOST]]);
  assertEquals(mpv.opened.length, 0);
  await senders.decide(sender.key, true);
  assertEquals(await command(OPEN), { state: "idle", positionSeconds: null, durationSeconds: null });
  assertEquals(mpv.opened.map(({ url, title }) => [url, title]), [[URL_THERE, "Film "]]);
  mpv.now = { state: "playing", positionSeconds: 3, durationSeconds: 60 };
  assertEquals(await command({ kind: "status" }), mpv.now);
  await command({ kind: "seek", positionSeconds: 9 });
  assertEquals(mpv.commands, [{ kind: "seek", positionSeconds: 9 }]);
  await senders.decide(sender.key, false);
  assertEquals(await codeOf(() => command({ kind: "pause" })), "denied");
  assertEquals(mpv.commands.length, 1);
});

test("CastReceiver accepts a command only once, in time, from the requesting machine, complete and signed for this receiver", async () => {
  const { receiver, identity, sender, senders, greet, bodyOf, mpv, clock, command } = await room();
  await codeOf(() => command(OPEN));
  await senders.decide(sender.key, true);
  const refused = async (body: string, signature: string, host = HOST) =>
    assertEquals(await codeOf(() => receiver.command(host, body, signature, signal)), "denied");
  const body = bodyOf(await greet(), OPEN);
  const signature = await sender.sign("command", identity.key, body);
  await receiver.command(HOST, body, signature, signal);
  await refused(body, signature);
  assertEquals(mpv.opened.length, 1, "a second time");

  const fresh = async () => bodyOf(await greet(), OPEN);
  const changed = await fresh();
  await refused(changed.replace("film.mkv", "other.mkv"), await sender.sign("command", identity.key, changed));
  const forAnother = await fresh();
  await refused(forAnother, await sender.sign("command", sender.key, forAnother));
  const greeting = await fresh();
  await refused(greeting, await sender.sign("hello", identity.key, greeting));
  await refused(await fresh(), "");
  const elsewhere = await fresh();
  await refused(elsewhere, await sender.sign("command", identity.key, elsewhere), "192.168.7.10");
  const late = await fresh();
  await clock.advanceAsync(31_000);
  await refused(late, await sender.sign("command", identity.key, late));
  const invented = bodyOf("0".repeat(32), OPEN);
  await refused(invented, await sender.sign("command", identity.key, invented));
  assertEquals(mpv.opened.length, 1);
});

test("CastReceiver follows no address on another machine or without a stream, and reads requests within bounds", async () => {
  const { receiver, sender, senders, command, mpv, greet, clock } = await room();
  await codeOf(() => command(OPEN));
  await senders.decide(sender.key, true);
  for (
    const url of [
      "http://192.168.7.1/admin",
      "https://192.168.7.9/engine/f/x",
      "file:///etc/passwd",
      `http://${HOST}:1/a'b`,
      `http://${HOST}@evil.example/x`,
      `http://${HOST}:1/a b`,
      "",
    ]
  ) {
    assertEquals(await codeOf(() => command({ ...OPEN, url })), "invalid_argument", url);
    await clock.advanceAsync(31_000);
  }
  for (const action of [null, {}, { kind: "eject" }, { kind: "seek", positionSeconds: -1 }, { kind: "seek" }]) {
    assertEquals(await codeOf(() => command(action)), "invalid_argument");
    await clock.advanceAsync(31_000);
  }
  for (const body of ["", "[]", "{", '{"sender":1}', "null"]) {
    assertEquals(await codeOf(() => receiver.command(HOST, body, "", signal)), "invalid_argument");
    assertEquals(await codeOf(() => receiver.hello(HOST, "h", body)), "invalid_argument");
  }
  assertEquals(mpv.opened.length, 0);
  let given = 0;
  const busy = async () => {
    for (; given < 30; given++) await greet("192.168.7.66");
  };
  assertEquals([await codeOf(busy), given], ["too_busy", 8]);
  await greet("192.168.7.67");
  await clock.advanceAsync(60_000);
  await greet();
});

test("CastReceiver lets only the engine whose stream plays control it, and forgets that engine when something else is opened", async () => {
  const { receiver, senders, sender, command, mpv, players, identity, greet, ports } = await room();
  await codeOf(() => command(OPEN));
  await senders.decide(sender.key, true);
  await command(OPEN);
  mpv.now = { state: "playing", positionSeconds: 3, durationSeconds: 60 };
  const other = await CastIdentity.load(ports, null);
  const byOther = async (action: unknown) => {
    const body = JSON.stringify({ sender: other.key, nonce: await greet(), name: "Other", action });
    return await receiver.command(HOST, body, await other.sign("command", identity.key, body), signal);
  };
  await codeOf(() => byOther(OPEN));
  await senders.decide(other.key, true);
  assertEquals((await byOther({ kind: "status" })).state, "idle");
  assertEquals(await codeOf(() => byOther({ kind: "pause" })), "conflict");
  await byOther({ kind: "stop" });
  assertEquals(mpv.commands, []);
  await players.open("program:mpv", { isLocal: true }, () => Promise.resolve(new FakeStream("own")), signal);
  assertEquals((await command({ kind: "status" })).state, "idle");
  assertEquals(await codeOf(() => command({ kind: "pause" })), "conflict");
});

test("CastReceiver tells a sender that the player was replaced meanwhile", async () => {
  const { command, senders, sender, mpv } = await room();
  await codeOf(() => command(OPEN));
  await senders.decide(sender.key, true);
  assertEquals(await codeOf(() => command({ ...OPEN, output: "hls" })), "unavailable");
  assertEquals(mpv.opened.length, 0);
});

const PLAYLIST_THERE = new URL(`http://${HOST}:6878/engine/m/${"a".repeat(40)}/${"b".repeat(32)}.m3u8`);

test("CastRelay passes on playlists and segments of the engine that sent them, and nothing else", async () => {
  const clock = new FakeClock();
  const asked: string[] = [];
  let answer: () => Response = () => new Response("");
  const fetcher = ((url: URL) => Promise.resolve((asked.push(url.href), answer()))) as unknown as typeof fetch;
  const relay = new CastRelay({ clock, fetch: fetcher });
  const { path, close } = relay.open(PLAYLIST_THERE);
  const id = /^\/cast\/media\/([0-9a-f]{32})\/index\.m3u8$/.exec(path)![1]!;
  const playlist = (...lines: string[]) => {
    answer = () => new Response(["#EXTM3U", ...lines].join("\n"));
    return relay.playlist(id, signal);
  };
  const segment = `/engine/c/${"a".repeat(40)}/7.ts?_idx=1`;
  const written = await playlist("#EXTINF:5,", `http://${HOST}:6878${segment}`, "#EXT-X-ENDLIST", "");
  assertEquals(written, `#EXTM3U\n#EXTINF:5,\nsegment?of=${encodeURIComponent(segment)}\n#EXT-X-ENDLIST\n`);
  answer = () => new Response("bytes");
  assertEquals(await new Response(await relay.segment(id, segment, signal)).text(), "bytes");
  assertEquals(asked, [PLAYLIST_THERE.href, `http://${HOST}:6878${segment}`]);
  const elsewhere = [
    `http://192.168.7.1${segment}`,
    `http://${HOST}:80${segment}`,
    `https://${HOST}:6878${segment}`,
    "/server/api?method=get_status",
    "file:///etc/passwd",
    '#EXT-X-KEY:METHOD=AES-128,URI="http://192.168.7.1/"',
  ];
  for (const line of elsewhere) assertEquals(await codeOf(() => playlist(line)), "protocol_violation", line);
  answer = () => new Response("<html>");
  assertEquals(await codeOf(() => relay.playlist(id, signal)), "protocol_violation");
  answer = () => new Response("x".repeat(3_000_000));
  assertEquals(await codeOf(() => relay.playlist(id, signal)), "too_large");
  for (const status of [302, 404]) {
    answer = () => new Response("", { status });
    assertEquals(await codeOf(() => relay.playlist(id, signal)), "connection_failed");
  }
  asked.length = 0;
  for (const wrong of ["", "/server/api", `//evil.example${segment}`, `${segment}#x`, `/engine/c/../../x${segment}`]) {
    assertEquals(await codeOf(() => relay.segment(id, wrong, signal)), "invalid_argument", wrong);
  }
  assertEquals(await codeOf(() => relay.playlist("0".repeat(32), signal)), "not_found");
  for (let n = 0; n < 31; n++) relay.open(PLAYLIST_THERE);
  assertEquals(await codeOf(() => Promise.resolve().then(() => relay.open(PLAYLIST_THERE))), "too_busy");
  close();
  assertEquals(await codeOf(() => relay.segment(id, segment, signal)), "not_found");
  assertEquals([asked, clock.pendingTimers], [[], 0]);
});

test("CastSenders stores allowed engines, and bounds the number of those that ask", async () => {
  const { senders, ports, clock, files } = await room();
  const key = (n: number) => n.toString(16).padStart(64, "0");
  for (let n = 0; n < 9; n++) senders.ask({ key: key(n), name: `E${n}` }, HOST);
  assertEquals(senders.pending().map(({ name }) => name), ["E1", "E0"], "two from one machine");
  for (let n = 10; n < 60; n++) senders.ask({ key: key(n), name: "" }, `192.168.7.${n}`);
  assertEquals(senders.pending().length, 16);
  await senders.decide(key(0), true);
  await senders.decide(key(1), false);
  assertEquals(await codeOf(() => senders.decide(key(8), true)), "not_found");
  await clock.advanceAsync(601_000);
  assertEquals(senders.pending(), []);
  const again = await CastSenders.load(ports, "/state", [key(7)]);
  assertEquals(again.allowed(), [{ key: key(0), name: "E0" }, { key: key(7), name: "" }]);
  assert(again.isAllowed(key(7)) && !again.isAllowed(key(1)));
  await files.writeFile("/state/cast-senders.json", new TextEncoder().encode('[{"key":"*","name":""}]'));
  assertEquals((await CastSenders.load(ports, "/state", [])).allowed(), []);
  assertEquals(await codeOf(() => CastSenders.load(ports, null, ["any"])), "config");
});

test("EnginePlayer gives its stream only to the engine with the announced key, also when another machine relays its answer", async () => {
  const { identity, sender, receiver } = await room();
  const asked: string[] = [];
  const at = { host: HOST, port: 6878 };
  const playerOf = (greet: (body: string) => Promise<object>) => {
    const fetcher = async (url: URL, { body }: RequestInit) => {
      asked.push(url.pathname);
      return Response.json(await greet(String(body)));
    };
    const self = { identity: sender, name: "Study", fetch: fetcher as unknown as typeof fetch };
    return new EnginePlayer(self, { key: identity.key, name: "TV", at, output: "file" });
  };
  const impostor = playerOf(async (body) => {
    const nonce = randomNonce();
    const text = helloText(JSON.parse(body).challenge, nonce, `${HOST}:6878`);
    return { nonce, signature: await sender.sign("hello", identity.key, text) };
  });
  assertEquals(await codeOf(() => impostor.open(new FakeStream("1"), signal)), "denied");
  const between = playerOf((body) => receiver.hello("192.168.7.66", "192.168.7.5:6878", body));
  assertEquals(await codeOf(() => between.open(new FakeStream("1"), signal)), "denied");
  const odd = playerOf(() => Promise.resolve({}));
  assertEquals(await codeOf(() => odd.open(new FakeStream("1"), signal)), "protocol_violation");
  assertEquals(asked, Array(3).fill("/cast/hello"), "nothing but the first step");
  assertEquals((await odd.status(signal)).state, "idle");
  assertEquals(await codeOf(() => odd.control({ kind: "pause" }, signal)), "conflict");
});

test("describeEngine() takes an announcement with a key, and its name as text", () => {
  const describe = (facts: Record<string, string>) =>
    describeEngine({ instance: "I", ...{ host: HOST, port: 1 }, facts: new Map(Object.entries(facts)) });
  const key = "a".repeat(64);
  assertEquals(describe({ key, name: "Study\u202e" }), {
    key,
    name: "Study",
    at: { host: HOST, port: 1 },
    output: "file",
  });
  assertEquals(describe({ key, out: "hls" })?.output, "hls");
  assertEquals(describe({ key })?.name, "I");
  assertEquals(describe({ key: "A".repeat(64) }), null);
  assertEquals(describe({}), null);
});
