import { test } from "node:test";
import { assertEquals, assertThrows } from "@std/assert";
import type { MillraceError } from "../../src/errors.ts";
import { LivePeer } from "../../src/live/node/neighbour/live-peer.ts";
import { createLiveKey, CryptoVerifier, HeaderSigner } from "../../src/live/signer.ts";
import { decodeSourceMessage, encodeSourceMessage } from "../../src/live/source-message.ts";
import type { LivePeerSession } from "../../src/live/swarm/live-session.ts";
import { SourceProofs } from "../../src/live/swarm/source-proofs.ts";
import { until } from "../support/until.ts";
import { ScriptedLink } from "./support.ts";
import { sha256 } from "../../platform/shared/digests.ts";
import { ed25519 } from "../../platform/shared/signatures.ts";

const INFOHASH = new Uint8Array(20).fill(9);
const idOf = (n: number) => new Uint8Array(20).fill(n);
const [SOURCE, VIEWER, OTHER] = [idOf(1), idOf(2), idOf(3)];

/** A session with the member `peerId`, and what is sent to it. */
function sessionWith(peerId: Uint8Array): { session: LivePeerSession; sent: Uint8Array[] } {
  const sent: Uint8Array[] = [];
  const session = {
    info: { peerId },
    isReady: true,
    link: { sendLive: (bytes: Uint8Array) => void sent.push(bytes) },
    peer: new LivePeer(new ScriptedLink(), { role: "source", upBytesPerS: null }, 0),
  } as unknown as LivePeerSession;
  return { session, sent };
}

async function keys(infohash = INFOHASH) {
  const key = await createLiveKey();
  const signer = await HeaderSigner.create(key.privateKey, infohash);
  return { signer, verifier: new CryptoVerifier(key.publicKey, infohash, { sha256, ed25519 }) };
}

/** The proofs of the viewer, how often one was examined, and the sessions that were believed. */
function viewerOf(verifier: CryptoVerifier) {
  const seen = { examined: 0, proven: [] as LivePeerSession[] };
  const proofs = new SourceProofs({
    peerId: VIEWER,
    sign: null,
    verify: (...proof) => {
      seen.examined++;
      return verifier.source(...proof);
    },
    proven: (session) => void seen.proven.push(session),
  });
  return { seen, proofs };
}

test("SourceProofs has a viewer believe the broadcaster, by the message that it sent", async () => {
  const { signer, verifier } = await keys();
  const sign = signer.signSource.bind(signer);
  const atSource = new SourceProofs({ peerId: SOURCE, sign, verify: () => false, proven: () => {} });
  const { session: toViewer, sent } = sessionWith(VIEWER);
  atSource.joined(toViewer);
  await until("the proof is sent", () => sent.length === 1);
  const { seen, proofs } = viewerOf(verifier);
  const { session } = sessionWith(SOURCE);
  assertEquals(session.peer!.isSource, false, "that it says so proves nothing");
  proofs.message(session, decodeSourceMessage(sent[0]!)!);
  assertEquals(seen.examined, 1);
  assertEquals([session.peer!.isSource, seen.proven], [true, [session]]);
});

for (
  const [what, receiver, sender] of [
    ["that was made for another viewer", OTHER, SOURCE],
    ["of another member", VIEWER, OTHER],
  ] as const
) {
  test(`SourceProofs does not believe a proof ${what}`, async () => {
    const { signer, verifier } = await keys();
    const { seen, proofs } = viewerOf(verifier);
    const { session } = sessionWith(SOURCE);
    proofs.message(session, { type: "source", signature: await signer.signSource(receiver, sender) });
    assertEquals(seen.examined, 1);
    assertEquals([session.peer!.isSource, seen.proven], [false, []]);
  });
}

test("SourceProofs does not believe a proof by another key, and examines one per connection", async () => {
  const [{ verifier }, { signer }] = await Promise.all([keys(), keys()]);
  const { seen, proofs } = viewerOf(verifier);
  const { session } = sessionWith(SOURCE);
  const signature = await signer.signSource(VIEWER, SOURCE);
  for (let i = 0; i < 3; i++) proofs.message(session, { type: "source", signature });
  const { session: next } = sessionWith(SOURCE);
  proofs.message(next, { type: "source", signature });
  assertEquals([seen.examined, seen.proven], [2, []]);
});

test("SourceProofs of a viewer sends no proof", () => {
  const { session, sent } = sessionWith(SOURCE);
  new SourceProofs({ peerId: VIEWER, sign: null, verify: () => false, proven: () => {} }).joined(
    session,
  );
  assertEquals(sent, []);
});

test("HeaderSigner.signSource() makes no signature that proves another stream's broadcaster", async () => {
  const key = await createLiveKey();
  const elsewhere = await HeaderSigner.create(key.privateKey, OTHER);
  const verifier = new CryptoVerifier(key.publicKey, INFOHASH, { sha256, ed25519 });
  assertEquals(verifier.source(await elsewhere.signSource(VIEWER, SOURCE), VIEWER, SOURCE), false);
});

test("decodeSourceMessage() reads SOURCE, leaves other messages alone, and throws for a wrong length", () => {
  const signature = new Uint8Array(64).map((_, i) => i);
  const bytes = encodeSourceMessage({ type: "source", signature });
  assertEquals(decodeSourceMessage(bytes), { type: "source", signature });
  assertEquals(decodeSourceMessage(Uint8Array.of(11, 0)), null);
  for (const length of [1, 64, 66]) {
    const error = assertThrows(() => decodeSourceMessage(new Uint8Array(length).fill(12))) as MillraceError;
    assertEquals(error.code, "protocol_violation");
  }
});
