import { test } from "node:test";
import { assert } from "@std/assert";
import { decodeLiveMessage } from "../../src/live/messages.ts";
import { Flight } from "../../src/live/node/line/flight.ts";
import type { LiveLink } from "../../src/live/node/neighbour/live-lane.ts";
import { LivePeer } from "../../src/live/node/neighbour/live-peer.ts";
import { seededRandom } from "../simulation/event-queue.ts";
import { EventWheel } from "../simulation/event-wheel.ts";
import { SimLine } from "../simulation/sim-line.ts";
import { PacketLoss, TcpStream } from "../simulation/tcp-stream.ts";

const BLOCK = 16_384;
/** Blocks come together this often, as the pieces of a stream do, ms. */
const PIECE_MS = 230;

/** A sender over TCP that loses packets, to neighbours that are 30 to 130 ms away. */
class LossyRig {
  readonly queue = new EventWheel();
  readonly flight: Flight;
  readonly peers: LivePeer[];
  /** Neighbours that wait for a block, each as often as it has one coming. */
  #waiting: LivePeer[] = [];
  #isAsleep = false;
  readonly #losses: PacketLoss;

  constructor({ bytesPerS, loss, peers }: { bytesPerS: number; loss: number; peers: number }) {
    this.flight = new Flight({
      guessBytesPerS: () => bytesPerS,
      isTold: true,
      isProbed: false,
      limitBytesPerS: Infinity,
      random: seededRandom(1),
    });
    this.#losses = new PacketLoss({ share: loss }, seededRandom(2));
    const line = new SimLine(this.queue, bytesPerS, 250);
    this.peers = Array.from({ length: peers }, (_, i) => this.#neighbour(line, 15 + 50 * i / peers));
    for (const peer of this.peers) this.flight.mark(peer, 0);
  }

  #neighbour(line: SimLine, oneWayMs: number): LivePeer {
    const sends = (leaves: (bytes: number) => number | null) => ({
      packet: (bytes: number) => {
        const ms = leaves(bytes);
        return this.#losses.next() ? null : ms;
      },
    });
    const [near, far] = [sends((bytes) => line.packet(bytes)), sends(() => 0)];
    const there = new TcpStream(this.queue, near, far, oneWayMs);
    const back = new TcpStream(this.queue, far, near, oneWayMs);
    const link = {
      send: (bytes: Uint8Array) => {
        const message = decodeLiveMessage(bytes);
        if (message?.type !== "ping") return;
        there.write(bytes.length, () => {
          const cameMs = Math.floor(this.queue.nowMs);
          back.write(bytes.length, () => {
            this.flight.echoed(peer, message.nonce, cameMs, this.queue.nowMs);
            this.#pump();
          });
        });
      },
      piece: () => there.write(BLOCK, () => {}),
    } as unknown as LiveLink;
    const peer: LivePeer = new LivePeer(link, { role: "viewer", upBytesPerS: null }, 0);
    return peer;
  }

  /** Sends `blocks` of each piece, to one neighbour after another, until `ms`. What has waited for 2 s is shed. */
  run(blocks: number, ms: number): void {
    let next = 0;
    const feed = () => {
      for (let i = 0; i < blocks; i++) this.#waiting.push(this.peers[next++ % this.peers.length]!);
      this.#waiting = this.#waiting.slice(-blocks * 2000 / PIECE_MS);
      this.flight.tick(this.peers, this.queue.nowMs);
      this.#pump();
      this.queue.after(PIECE_MS, feed);
    };
    this.queue.after(2000, feed);
    this.queue.run(ms);
  }

  #pump(): void {
    const { flight, queue } = this;
    while (flight.hasRoom(queue.nowMs)) {
      const at = this.#waiting.findIndex((peer) => !flight.isFull(peer));
      if (at < 0) break;
      const peer = this.#waiting.splice(at, 1)[0]!;
      peer.link.piece(0, 0, new Uint8Array());
      flight.handed(peer, BLOCK, queue.nowMs);
    }
    const isMore = this.#waiting.some((peer) => !flight.isFull(peer));
    flight.isLimited = isMore && !flight.hasRoom(queue.nowMs);
    const pauseMs = flight.pauseMs(queue.nowMs);
    if (!isMore || pauseMs === 0 || this.#isAsleep) return;
    this.#isAsleep = true;
    queue.after(pauseMs, () => {
      this.#isAsleep = false;
      this.#pump();
    });
  }
}

test("Flight takes a line for no slower because its connections lose packets", () => {
  for (const bytesPerS of [250_000, 1_000_000]) {
    const rig = new LossyRig({ bytesPerS, loss: 0.01, peers: 6 });
    // 0.8 of what the line carries.
    rig.run(Math.floor(0.8 * bytesPerS * PIECE_MS / 1000 / BLOCK), 40_000);
    const known = rig.flight.line.bytesPerS;
    assert(known > 0.75 * bytesPerS && known < 1.4 * bytesPerS, `${bytesPerS}: ${known}`);
  }
});

test("Flight knows what a line carries that loses packets and is given too much", () => {
  const rig = new LossyRig({ bytesPerS: 250_000, loss: 0.01, peers: 6 });
  const clean = new LossyRig({ bytesPerS: 250_000, loss: 0, peers: 6 });
  for (const one of [rig, clean]) one.run(6, 40_000);
  for (const { flight: { line } } of [rig, clean]) {
    assert(line.bytesPerS > 170_000 && line.bytesPerS < 300_000, `${line.bytesPerS}`);
  }
});
