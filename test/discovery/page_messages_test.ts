import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import type { Announce } from "../../src/discovery/announce.ts";
import { cleanDescription, MAX_DESCRIPTION_CHARS } from "../../src/discovery/page-description.ts";
import { announceText, answerText, MAX_MESSAGE_CHARS, readMessage } from "../../src/discovery/page-tracker-messages.ts";
import { noise, seededBelow } from "../support/random.ts";

const HASH = Uint8Array.from({ length: 20 }, (_, i) => 250 - 12 * i);
const HASH_TEXT = String.fromCharCode(...HASH);
const HASH_HEX = [...HASH].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const PEER_HEX = "2d".repeat(20);
const ANNOUNCE: Announce = {
  infohash: HASH,
  peerId: noise(20, 4),
  port: 1,
  uploadedBytes: 5,
  downloadedBytes: 6,
  leftBytes: 7,
  event: "started",
  numWant: 80,
  key: 1,
  trackerId: null,
};

/** As Chromium describes a data channel, beside what is nobody's business. */
const DESCRIPTION = [
  "v=0",
  "o=- 4611731400430051336 2 IN IP4 127.0.0.1",
  "s=-",
  "t=0 0",
  "a=group:BUNDLE 0",
  "a=extmap-allow-mixed",
  "a=msid-semantic: WMS",
  "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
  "c=IN IP4 203.0.113.9",
  "a=candidate:1 1 udp 2113937151 0e1d4b6c-3a5f.local 50000 typ host generation 0 network-cost 999",
  "a=candidate:2 1 udp 1677729535 203.0.113.9 50001 typ srflx raddr 192.168.1.7 rport 50000 generation 0",
  "a=candidate:3 1 udp 2113937151 192.168.1.7 50000 typ host",
  "a=candidate:4 1 tcp 1518280447 203.0.113.9 9 typ host tcptype active",
  "a=candidate:5 1 udp 1677729535 2001:db8::7 50002 typ srflx",
  "a=candidate:6 1 udp 1677729535 203.0.113.9 0 typ srflx",
  "a=ice-ufrag:abcd",
  "a=ice-pwd:abcdefghijklmnopqrstuvwx",
  "a=ice-options:trickle",
  "a=fingerprint:sha-256 AB:CD:EF:01",
  "a=setup:actpass",
  "a=mid:0",
  "a=sctp-port:5000",
  "a=max-message-size:262144",
  "",
].join("\r\n");

test("cleanDescription() keeps a data channel and the candidates that may be used, without what they came from", () => {
  const asked: string[] = [];
  const clean = cleanDescription(DESCRIPTION, ({ host, port }) => {
    asked.push(`${host} ${port}`);
    return host !== "192.168.1.7";
  })!;
  assertEquals(asked, ["203.0.113.9 50001", "192.168.1.7 50000", "2001:db8::7 50002"]);
  assertEquals(clean.split("\r\n").filter((line) => /^a=candidate|^c=|trickle|msid/.test(line)), [
    "c=IN IP4 0.0.0.0",
    "a=candidate:2 1 udp 1677729535 203.0.113.9 50001 typ srflx",
    "a=candidate:5 1 udp 1677729535 2001:db8::7 50002 typ srflx",
  ]);
  assertEquals(cleanDescription(clean, () => true), clean);
});

test("cleanDescription() refuses what is too long, describes no channel, or several", () => {
  const good = () => true;
  const without = (start: string) => DESCRIPTION.split("\r\n").filter((line) => !line.startsWith(start)).join("\r\n");
  for (const start of ["v=", "m=", "a=ice-ufrag", "a=ice-pwd", "a=fingerprint", "a=setup"]) {
    assertEquals(cleanDescription(without(start), good), null, start);
  }
  assertEquals(cleanDescription(DESCRIPTION + "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n", good), null);
  assertEquals(cleanDescription(DESCRIPTION + "a=".repeat(MAX_DESCRIPTION_CHARS), good), null);
  const many = Array.from({ length: 100 }, (_, i) => `a=candidate:1 1 udp 1 203.0.113.9 ${i + 1} typ host\r\n`).join(
    "",
  );
  assertEquals(cleanDescription(DESCRIPTION + many, good)!.match(/a=candidate/g)!.length, 16);
});

test("announceText() and answerText() write hashes and ids as one character for each byte", () => {
  const said = JSON.parse(announceText(ANNOUNCE, "id", [{ offerIdHex: HASH_HEX, sdp: "v=0" }]));
  assertEquals(said, {
    action: "announce",
    info_hash: HASH_TEXT,
    peer_id: String.fromCharCode(...ANNOUNCE.peerId),
    uploaded: 5,
    downloaded: 6,
    left: 7,
    event: "started",
    numwant: 1,
    trackerid: "id",
    offers: [{ offer: { type: "offer", sdp: "v=0" }, offer_id: HASH_TEXT }],
  });
  const regular = JSON.parse(announceText({ ...ANNOUNCE, event: "" }, null, []));
  assertEquals([regular.event, regular.trackerid, regular.numwant], [undefined, undefined, 0]);
  const answer = JSON.parse(answerText(ANNOUNCE, null, { offerIdHex: HASH_HEX, peerIdHex: PEER_HEX, sdp: "v=0" }));
  assertEquals([answer.to_peer_id, answer.offer_id, answer.info_hash], ["-".repeat(20), HASH_TEXT, HASH_TEXT]);
  assertEquals(answer.answer, { type: "answer", sdp: "v=0" });
});

test("readMessage() reads replies, refusals, offers and answers, and leaves out what is malformed", () => {
  const read = (fields: unknown) => readMessage(JSON.stringify(fields));
  const reply = read({ action: "announce", info_hash: HASH_TEXT, interval: 120, complete: 3, incomplete: 4 })!;
  assertEquals(
    [reply.infohashHex, reply.intervalMs, reply.seeders, reply.leechers, reply.isReply],
    [HASH_HEX, 120_000, 3, 4, true],
  );
  assertEquals(read({ "failure reason": "x".repeat(5000) })!.failure!.length, 200);
  const described = { info_hash: HASH_TEXT, offer_id: HASH_TEXT, peer_id: "-".repeat(20) };
  const offer = { type: "offer", sdp: "v=0" };
  assertEquals(read({ ...described, offer })!.offer, { offerIdHex: HASH_HEX, peerIdHex: PEER_HEX, sdp: "v=0" });
  assertEquals(read({ ...described, answer: { type: "answer", sdp: "v=0" } })!.answer!.sdp, "v=0");
  const malformed: readonly Record<string, unknown>[] = [
    { offer, offer_id: HASH_HEX },
    { offer, peer_id: "short" },
    { offer, peer_id: "\u{1F600}".repeat(10) },
    { offer, peer_id: 7 },
    { offer: { type: "answer", sdp: "v=0" } },
    { offer: { type: "offer", sdp: 7 } },
    { offer: { type: "offer", sdp: "v".repeat(MAX_DESCRIPTION_CHARS + 1) } },
    { offer: "v=0" },
    { offer: [offer] },
  ];
  for (const fields of malformed) assertEquals(read({ ...described, ...fields })!.offer, null, JSON.stringify(fields));
  const odd = read({ info_hash: [1], interval: -1, complete: 1.5, incomplete: "4", "warning message": 7 })!;
  assertEquals(
    [odd.infohashHex, odd.intervalMs, odd.seeders, odd.leechers, odd.warning, odd.isReply],
    [null, null, null, null, null, false],
  );
  for (const text of ["", "{", "null", "[]", "7", '"text"', `"${"x".repeat(MAX_MESSAGE_CHARS)}"`]) {
    assertEquals(readMessage(text), null);
  }
});

test("readMessage() and cleanDescription() survive random changes, and let no other candidate through", () => {
  const below = seededBelow(51);
  const whole = JSON.stringify({
    ...{ action: "announce", info_hash: HASH_TEXT, interval: 120, offer_id: HASH_TEXT, peer_id: HASH_TEXT },
    offer: { type: "offer", sdp: DESCRIPTION },
  });
  const isGood = ({ host }: { host: string }) => host === "203.0.113.9";
  const changed = (text: string) => {
    const characters = [...text];
    for (let i = below(6); i >= 0; i--) {
      characters.splice(below(characters.length), below(3), String.fromCharCode(below(300)));
    }
    return characters.join("");
  };
  for (let i = 0; i < 2000; i++) {
    const message = readMessage(changed(whole));
    if (message?.offer) assert(message.offer.sdp.length <= MAX_DESCRIPTION_CHARS);
    const clean = cleanDescription(changed(DESCRIPTION), isGood);
    for (const line of clean?.split("\r\n") ?? []) {
      if (line.startsWith("a=candidate")) assert(/ 203\.0\.113\.9 \d+ typ \w+$/.test(line), line);
    }
  }
});
