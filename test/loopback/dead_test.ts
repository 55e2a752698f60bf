/** Streams that die: before they start, while they play, one at a time and many at once. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { assert, assertEquals, assertLess, assertMatch } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { seedFiles, serveEngine } from "../support/engine.ts";
import { clip } from "../support/fixtures.ts";
import { until } from "../support/until.ts";
import { badPeer, honest } from "../swarm/support/bad-peer.ts";
import { makeTorrent } from "../swarm/support/torrent.ts";
import { noise } from "../support/random.ts";
import { ask, assertSameBytes, bytesOf, magnetOf, MIB, seedNoise, startSession, statOf } from "./support.ts";
import { heldUp } from "../support/held-up.ts";

test("peers that answer the handshake and never send fail the start at its deadline, and the swarm goes", async () => {
  const ports = await loadPorts();
  const torrent = await makeTorrent({ bytes: 2 * MIB });
  const mute = await badPeer(ports, torrent, () => {});
  const choking = await badPeer(ports, torrent, () => {}, { unchoke: false });
  const served = await serveEngine({ startTimeoutMs: 2_000 });
  try {
    for (const peer of [mute, choking]) {
      const query = { magnet: magnetOf(torrent.metainfo, peer.address), _idx: "0" };
      const redirect = await fetch(`${served.url}/engine/getstream?${new URLSearchParams(query)}`);
      assertEquals([redirect.status, await redirect.text()], [504, "start timeout: no_data\n"]);
      // The session is returned before any data has come, and then reports that none came.
      const started = await startSession(served, "getstream", query);
      const played = await fetch(started.playback_url);
      assertEquals([played.status, await played.text()], [504, "start timeout: no_data\n"]);
      assertEquals((await statOf(started))["error_message"], "start timeout: no_data");
    }
    await until("no swarm is left", () => served.engine.swarms.list().length === 0, 5_000);
    assert([...mute.links, ...choking.links].length >= 2);
  } finally {
    await Promise.all([served.close(), mute.close(), choking.close()]);
  }
});

test("a seeder that dies in the middle ends the body at the read deadline, with reasons in stat and events", async () => {
  const ports = await loadPorts();
  const torrent = await makeTorrent({ bytes: 8 * MIB });
  const dying = await badPeer(ports, torrent, (request, answer) => {
    if (request.piece < 40) answer(honest(torrent, request));
  });
  const served = await serveEngine({ startTimeoutMs: 2_500, swarmLingerMs: 0 });
  try {
    const started = await startSession(served, "getfile", {
      magnet: magnetOf(torrent.metainfo, dying.address),
      _idx: "0",
      use_api_events: "1",
    });
    const response = await fetch(started.playback_url);
    let bytes = 0, ended: unknown = null;
    const others = heldUp();
    let lastMs = performance.now(), heldBeforeMs = 0;
    const reading = (async () => {
      try {
        for await (const chunk of response.body!) {
          bytes += chunk.length;
          lastMs = performance.now();
          heldBeforeMs = others.ms();
        }
      } catch (error) {
        ended = error;
      }
    })();
    await until("40 pieces were read", () => bytes >= 40 * 65_536);
    await dying.close();
    let reason: unknown = null;
    await until("stat tells the stall", async () => (reason = (await statOf(started)).stall_reason) !== null);
    assertEquals(reason, "no_peers");
    await reading;
    assert(ended !== null, "the body ends with an error, not as if it were complete");
    others.stop();
    assertLess(performance.now() - lastMs - (others.ms() - heldBeforeMs), 6_000);
    assertEquals(bytes, 40 * 65_536);
    const stat = await statOf(started);
    assertMatch(String(stat.error_message), /no data for 2500 ms: no_peers/);
    const names: string[] = [];
    for (;;) {
      const event = (await (await fetch(started.event_url!)).json()).response;
      names.push(event.name);
      // On a busy machine the stream may have been found slow before.
      if (event.name === "stalled" && event.params.reason === "no_peers") break;
    }
    await fetch(`${started.command_url}?method=stop`).then((answer) => answer.text());
    await until("no swarm is left", () => served.engine.swarms.list().length === 0, 3_000);
  } finally {
    await Promise.all([served.close(), dying.close()]);
  }
});

test("a failed start leaves nothing running, and the next one finds a fresh swarm", async () => {
  const seeder = await seedNoise(MIB);
  const served = await serveEngine({ startTimeoutMs: 2_000 });
  try {
    const { infohashHex } = seeder.metainfo;
    assertEquals((await ask(served, "getfile", { infohash: infohashHex })).error, "start timeout: no_peers");
    assertEquals((await startSession(served, "getfile", { magnet: seeder.magnet })).infohash, infohashHex);
    assertEquals((await ask(served, "getfile", { magnet: seeder.magnet, _idx: "7" })).response, null);
    assertEquals(served.engine.swarms.list().length, 1);
  } finally {
    await Promise.all([served.close(), seeder.close()]);
  }
});

test("200 starts of one magnet at once share a swarm and one reading of the index", async () => {
  const bytes = clip("mp4-end.mp4");
  const seeder = await seedFiles([{ path: "clip.mp4", bytes }], { pieceLengthBytes: 16_384 });
  const served = await serveEngine({ startTimeoutMs: 20_000 });
  try {
    const started = await Promise.all(
      Array.from({ length: 200 }, (_, n) =>
        startSession(served, n % 2 === 0 ? "getstream" : "manifest.m3u8", {
          magnet: seeder.magnet,
          pid: String(n % 50),
        })),
    );
    assertEquals(served.engine.swarms.list().length, 1);
    assertEquals(new Set(started.map((session) => session.playback_session_id)).size, 50);
    const sent = () => seeder.engine.swarms.list()[0]!.status().uploadedBytes;
    assertLess(sent(), bytes.length * 1.5 + MIB);
    const bodies = await Promise.all(
      started.filter((_, n) => n % 2 === 0).slice(0, 25).map((session) => bytesOf(session.playback_url)),
    );
    for (const body of bodies) assertSameBytes(body, bodies[0]!);
    assertLess(sent(), bytes.length * 1.5 + MIB, "the peers are asked once");
  } finally {
    await Promise.all([served.close(), seeder.close()]);
  }
});

test("50 dead magnets at once all fail at their deadline and leave nothing", async () => {
  const served = await serveEngine({ startTimeoutMs: 500 });
  try {
    const others = heldUp();
    const before = performance.now();
    const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => {
      const infohashHex = Array.from(noise(20, n + 1), (byte) => byte.toString(16).padStart(2, "0")).join("");
      return ask(served, n % 2 === 0 ? "getstream" : "manifest.m3u8", {
        magnet: magnetOf({ infohashHex }, { host: "127.0.0.1", port: 9 }),
      });
    }));
    others.stop();
    assertLess(performance.now() - before - others.ms(), 4_000);
    for (const { error } of answers) assertEquals(error, "start timeout: no_peers");
    await until("no swarm is left", () => served.engine.swarms.list().length === 0, 5_000);
  } finally {
    await served.close();
  }
});

test("get_torrent_progress says what a tracker answered instead of peers, and what of the magnet was not understood", async () => {
  const tracker = createServer((_request, response) => response.end("d14:failure reason17:unknown passkey 1e"));
  await new Promise<void>((resolve) => tracker.listen(0, "127.0.0.1", resolve));
  const { port } = tracker.address() as AddressInfo;
  const served = await serveEngine({ startTimeoutMs: 3_000 });
  const infohash = `${"0".repeat(39)}2`;
  try {
    const announce = `http://127.0.0.1:${port}/announce?passkey=secret`;
    const magnet = `magnet:?xt=urn:btih:${infohash}&tr=${encodeURIComponent(announce)}&tr=31313131&x.pe=nowhere`;
    const starting = ask(served, "getfile", { magnet });
    const token = (await (await fetch(`${served.url}/server/api?method=get_api_access_token`)).json()).result.token;
    const query = new URLSearchParams({ method: "get_torrent_progress", infohash, token });
    const progress = async () => (await (await fetch(`${served.url}/server/api?${query}`)).json()).result;
    await until("the tracker refused", async () => (await progress()).trackers[0]?.error != null);
    const { trackers: [{ name, peers, error }], unread } = await progress();
    assertEquals(unread, ["tr=31313131", "x.pe=nowhere"]);
    assertEquals([peers, error], [0, "unknown passkey 1"]);
    assert(!name.includes("secret"), name);
    await starting;
  } finally {
    await served.close();
    tracker.close();
  }
});
