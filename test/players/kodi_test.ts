/** Requests to Kodi and how its answers are read; test/interop has the real Kodi. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import { KodiFinder } from "../../src/players/kodi/kodi-finder.ts";
import { readKodiAddress } from "../../src/players/kodi/kodi-rpc.ts";
import type { PlayerDevice } from "../../src/players/player-device.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { FakeStream } from "./support.ts";

const { signal } = new AbortController();

/** A Kodi without a screen that does what its API says; `says` answers first. */
class FakeKodi {
  readonly clock = new FakeClock();
  readonly calls: { url: string; authorization: string | null; method: string; params: Record<string, unknown> }[] = [];
  readonly logged: string[] = [];
  /** Addresses that it opens, and the one that plays. */
  file: string | null = null;
  isActive = false;
  speed = 1;
  opens = true;
  says: (method: string) => Response | undefined = () => undefined;

  readonly fetch = ((url: URL, init: RequestInit) => {
    const { method, params } = JSON.parse(String(init.body));
    const authorization = new Headers(init.headers).get("authorization");
    this.calls.push({ url: url.href, authorization, method, params });
    return Promise.resolve(
      this.says(method) ?? Response.json({ jsonrpc: "2.0", id: 1, result: this.#result(method, params) }),
    );
  }) as typeof fetch;

  finder(...addresses: string[]): KodiFinder {
    const log = {
      log: (level: string, _message: string, fields: Readonly<Record<string, unknown>> = {}) =>
        void this.logged.push(`${level} ${JSON.stringify(fields)} ${fields["error"]}`),
      child: () => log,
    };
    return new KodiFinder({
      clock: this.clock,
      fetch: this.fetch,
      log,
      network: { interfaces: () => [], resolve: (host) => Promise.resolve([host === "tv.lan" ? "192.168.7.9" : host]) },
    }, addresses);
  }

  async player(): Promise<PlayerDevice> {
    return (await this.finder("tv.lan").list())[0]!;
  }

  #result(method: string, params: Record<string, unknown>): unknown {
    switch (method) {
      case "XBMC.GetInfoLabels":
        return { "System.FriendlyName": "Kodi (den)" };
      case "XBMC.GetInfoBooleans":
        return { "Player.HasMedia": this.file !== null };
      case "Player.GetActivePlayers":
        return this.isActive ? [{ playerid: 1, playertype: "internal", type: "video" }] : [];
      case "Player.GetProperties":
        return {
          speed: this.speed,
          time: { hours: 1, minutes: 2, seconds: 3, milliseconds: 500 },
          totaltime: { hours: 0, minutes: 0, seconds: 0, milliseconds: 0 },
        };
      case "Application.GetProperties":
        return { volume: 40 };
      case "Player.Open":
        this.file = this.opens ? (params["item"] as { file: string }).file : null;
        return "OK";
      case "Player.Stop":
        this.file = null;
        this.isActive = false;
        return "OK";
      default:
        return {};
    }
  }
}

async function codeOf(work: () => Promise<unknown>): Promise<string> {
  return ((await assertRejects(work, MillraceError)) as MillraceError).code;
}

/** Lets what waits for the clock go on until `work` settles. */
async function within<T>(clock: FakeClock, work: Promise<T>): Promise<T> {
  let over = false;
  const done = work.finally(() => over = true);
  done.catch(() => {});
  while (!over) await clock.advanceAsync(250);
  return await done;
}

test("readKodiAddress() reads host, port and password, and shows no password in its error", () => {
  const basic = (text: string) => `Basic ${btoa(text)}`;
  const table: [string, string, number, string | null][] = [
    ["192.168.1.20", "192.168.1.20", 8080, null],
    ["tv.lan:80", "tv.lan", 80, null],
    ["[fe80::1]:81", "[fe80::1]", 81, null],
    ["kodi:secret@tv", "tv", 8080, basic("kodi:secret")],
    ["a%40b:p%3A%2F%40@tv:9", "tv", 9, basic("a@b:p:/@")],
  ];
  for (const [text, hostname, port, authorization] of table) {
    assertEquals(readKodiAddress(text), { hostname, port, authorization }, text);
  }
  for (const text of ["", "tv/jsonrpc", "kodi:secret@", "kodi:secret@tv:99999", "http://tv", "a b", "k:%zz@tv"]) {
    const error = assertThrows(() => readKodiAddress(text), MillraceError) as MillraceError;
    assertEquals([error.code, error.message.includes("kodi:secret@tv:")], ["config", false], text);
  }
});

test("list() names each Kodi that responds, and asks again after a while only", async () => {
  const kodi = new FakeKodi();
  const finder = kodi.finder("kodi:secret@tv.lan", "192.168.7.10:81");
  const players = await finder.list();
  assertEquals(players.map(({ facts, host }) => [facts.id, facts.type, facts.protocol, facts.name, host]), [
    ["kodi:tv.lan:8080", "proxy", null, "Kodi (den)", "192.168.7.9"],
    ["kodi:192.168.7.10:81", "proxy", null, "Kodi (den)", "192.168.7.10"],
  ]);
  assertEquals(kodi.calls.map(({ url, authorization }) => [url, authorization]), [
    ["http://tv.lan:8080/jsonrpc", `Basic ${btoa("kodi:secret")}`],
    ["http://192.168.7.10:81/jsonrpc", null],
  ]);
  await kodi.clock.advanceAsync(20_000);
  assertEquals((await finder.list())[0], players[0]);
  assertEquals(kodi.calls.length, 2);
  await kodi.clock.advanceAsync(30_000);
  assertEquals((await finder.list())[0], players[0], "the same object");
  assertEquals(kodi.calls.length, 4);
  kodi.says = () => {
    throw new TypeError("refused");
  };
  await kodi.clock.advanceAsync(45_000);
  assertEquals(await finder.list(), [], "both were switched off");
});

test("list() leaves out hosts that are silent, not Kodi or need another password, and warns of the latter without logging it", async () => {
  const table: [() => Response, RegExp][] = [
    [() => new Response("", { status: 401 }), /^warn .*--kodi/],
    [() => new Response("<html>"), /^debug .*no Kodi/],
    [() => new Response("null"), /^debug .*no Kodi/],
    [() => new Response("{}", { status: 500 }), /^debug .*no Kodi/],
    [() => Response.json({ result: { "System.FriendlyName": 5 } }), /^debug .*API/],
    [() => new Response("x".repeat(300_000)), /^debug .*too large/],
    [() => {
      throw new TypeError("refused");
    }, /^debug .*does not respond/],
  ];
  for (const [says, logged] of table) {
    const kodi = new FakeKodi();
    kodi.says = says;
    assertEquals(await kodi.finder("kodi:secret@tv.lan").list(), []);
    assertEquals(kodi.logged.length, 1);
    assertMatch(kodi.logged[0]!, logged);
    assert(!kodi.logged[0]!.includes("secret"));
  }
});

test("open() stops what plays, sends Kodi the address and resolves once it plays", async () => {
  const kodi = new FakeKodi();
  const player = await kodi.player();
  kodi.file = "something else";
  kodi.isActive = true;
  let isOver = false;
  const opening = player.open(new FakeStream("1"), signal).then(() => isOver = true);
  for (let i = 0; i < 40; i++) await kodi.clock.advanceAsync(250);
  assertEquals([isOver, kodi.file], [false, new FakeStream("1").url], "it is still being opened");
  kodi.isActive = true;
  await within(kodi.clock, opening);
  const told = kodi.calls.map(({ method }) => method).filter((method) => /Stop|Open/.test(method));
  assertEquals(told, ["Player.Stop", "Player.Open"]);
});

test("open() rejects when Kodi gives up on the stream", async () => {
  const kodi = new FakeKodi();
  const player = await kodi.player();
  kodi.opens = false;
  const stream = new FakeStream("1");
  stream.reason = "no_peers";
  const error = await assertRejects(
    () => within(kodi.clock, player.open(stream, signal)),
    MillraceError,
  ) as MillraceError;
  assertEquals([error.code, error.message], ["unavailable", "Kodi (den) does not play it: no_peers"]);
  kodi.says = (method) =>
    method === "Player.Open" ? Response.json({ error: { code: -32602, message: "Invalid params." } }) : undefined;
  const refused = await assertRejects(() => player.open(stream, signal), MillraceError) as MillraceError;
  assertEquals([refused.code, refused.message], ["unavailable", "Kodi refuses: Invalid params."]);
});

test("status() and control() pass on Kodi's state and the caller's commands", async () => {
  const kodi = new FakeKodi();
  const player = await kodi.player();
  assertEquals((await player.status(signal)).state, "idle");
  assertEquals(await codeOf(() => player.control({ kind: "pause" }, signal)), "conflict");
  kodi.file = "a";
  kodi.isActive = true;
  assertEquals(await player.status(signal), {
    state: "playing",
    positionSeconds: 3723.5,
    durationSeconds: null,
    volumePercent: 40,
  });
  kodi.speed = 0;
  assertEquals((await player.status(signal)).state, "paused");
  kodi.calls.length = 0;
  await player.control({ kind: "pause" }, signal);
  await player.control({ kind: "resume" }, signal);
  await player.control({ kind: "seek", positionSeconds: 3725.25 }, signal);
  const told = kodi.calls.filter(({ method }) => /PlayPause|Seek/.test(method));
  assertEquals(told.map(({ params }) => params), [
    { playerid: 1, play: false },
    { playerid: 1, play: true },
    { playerid: 1, value: { time: { hours: 1, minutes: 2, seconds: 5, milliseconds: 250 } } },
  ]);
  await player.setVolume!(62.6, signal);
  assertEquals([kodi.calls.at(-1)!.method, kodi.calls.at(-1)!.params], ["Application.SetVolume", { volume: 63 }]);
  await player.control({ kind: "stop" }, signal);
  assertEquals(kodi.file, null);
  kodi.says = () => Response.json({ result: [{ playerid: "one" }] });
  assertEquals(await codeOf(() => player.status(signal)), "protocol_violation");
});
