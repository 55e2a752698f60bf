import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { MillraceError } from "../../src/errors.ts";
import type { SocketAddress, TcpConnection } from "../../src/ports.ts";
import { AddressBook, type KnownAddress } from "../../src/swarm/neighbours/address-book.ts";
import { type Dialled, Transports } from "../../src/swarm/neighbours/transports.ts";
import { FakeClock } from "../support/fake-clock.ts";

const ADDRESS = { host: "203.0.113.1", port: 6881 };

/** One way to a peer: when it answers, ms; negative: when it refuses; null: never. */
class Way {
  readonly dials: number[] = [];
  aborted = 0;
  ended = 0;
  endedMs = 0;
  answerMs: number | null;
  readonly #clock: FakeClock;

  constructor(clock: FakeClock, answerMs: number | null) {
    this.#clock = clock;
    this.answerMs = answerMs;
  }

  connect(_address: SocketAddress, { signal }: { signal: AbortSignal }): Promise<TcpConnection> {
    this.dials.push(this.#clock.monotonic());
    const connection = { abort: () => this.aborted++ } as unknown as TcpConnection;
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => {
        this.ended++;
        this.endedMs = this.#clock.monotonic();
        reject(new MillraceError("aborted", "ended"));
      });
      const answerMs = this.answerMs;
      if (answerMs === null) return;
      this.#clock.setTimeout(() => {
        if (answerMs >= 0) resolve(connection);
        else reject(new MillraceError("connection_failed", "refused"));
      }, Math.abs(answerMs));
    });
  }
}

class Stage {
  readonly clock = new FakeClock();
  readonly tcp: Way;
  readonly utp: Way;
  readonly entry: KnownAddress;
  readonly transports: Transports;
  readonly ending = new AbortController();

  constructor(tcpMs: number | null, utpMs: number | null) {
    this.tcp = new Way(this.clock, tcpMs);
    this.utp = new Way(this.clock, utpMs);
    const book = new AddressBook();
    book.add(ADDRESS, "tracker");
    this.entry = book.get(ADDRESS)!;
    this.transports = new Transports(this.clock, this.tcp, this.utp);
  }

  async dial(): Promise<Dialled | unknown> {
    let result: unknown = "pending";
    this.transports.connect(this.entry, this.ending.signal).then((dialled) => result = dialled, (error) => {
      result = error;
    });
    await this.clock.advanceAsync(5_000);
    return result;
  }

  /** When each was dialled, ms after the beginning. */
  dials(sinceMs: number): unknown {
    return { tcp: this.tcp.dials.map((ms) => ms - sinceMs), utp: this.utp.dials.map((ms) => ms - sinceMs) };
  }
}

test("Transports.connect() takes TCP alone when it answers within the head start", async () => {
  const stage = new Stage(100, 0);
  const beganMs = stage.clock.monotonic();
  const dialled = await stage.dial() as Dialled;
  assertEquals([dialled.rttMs, stage.entry.transport], [100, "tcp"]);
  assertEquals(stage.dials(beganMs), { tcp: [0], utp: [] });
  assertEquals([stage.tcp.ended, stage.clock.pendingTimers], [0, 0]);
});

test("Transports.connect() dials by uTP as well after the head start, ends what lost, and begins there next time", async () => {
  const stage = new Stage(null, 80);
  const beganMs = stage.clock.monotonic();
  const dialled = await stage.dial() as Dialled;
  assertEquals([dialled.rttMs, stage.entry.transport], [80, "utp"]);
  assertEquals(stage.dials(beganMs), { tcp: [0], utp: [250] });
  assertEquals([stage.tcp.ended, stage.utp.ended], [1, 0]);
  const againMs = stage.clock.monotonic();
  await stage.dial();
  assertEquals(stage.dials(againMs), { tcp: [beganMs - againMs], utp: [beganMs + 250 - againMs, 0] });
});

test("Transports.connect() dials by uTP at once when TCP is refused, and rejects when both are", async () => {
  const stage = new Stage(-10, -20);
  const beganMs = stage.clock.monotonic();
  const error = await stage.dial();
  assert(error instanceof MillraceError);
  assertEquals(stage.dials(beganMs), { tcp: [0], utp: [10] });
  assertEquals([stage.entry.transport, stage.clock.pendingTimers], ["tcp", 0]);
});

test("Transports.connect() waits half a second for uTP at a host that refused TCP, longer where the refusal took long", async () => {
  for (const [tcpMs, endMs] of [[-10, 510], [-200, 800]] as const) {
    const stage = new Stage(tcpMs, null);
    const beganMs = stage.clock.monotonic();
    assert(await stage.dial() instanceof MillraceError);
    assertEquals([stage.utp.endedMs - beganMs, stage.utp.ended, stage.clock.pendingTimers], [endMs, 1, 0]);
  }
});

test("Transports.connect() ends both attempts when its signal fires", async () => {
  const stage = new Stage(null, null);
  stage.clock.setTimeout(() => stage.ending.abort(), 1_000);
  assert(await stage.dial() instanceof MillraceError);
  assertEquals([stage.tcp.ended, stage.utp.ended, stage.clock.pendingTimers], [1, 1, 0]);
});
