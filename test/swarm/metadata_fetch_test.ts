import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { METADATA_BUDGET_BYTES, MetadataBudget, MetadataFetch } from "../../src/swarm/metadata/metadata-fetch.ts";
import { FakeClock } from "../support/fake-clock.ts";

const BLOCK = 16384;
const HUGE = 8 << 20;

class Source {
  isReady = true;
  metadataUseless = false;
  fetching = false;
  isParted = false;
  asked = 0;
  readonly startedMs: number;
  readonly extensions: { extensions: string[]; metadataBytes: number | null };
  readonly link;

  constructor(host: string, sizeBytes: number | null, startedMs = 0) {
    this.startedMs = startedMs;
    this.extensions = { extensions: ["ut_metadata"], metadataBytes: sizeBytes };
    this.link = {
      remote: { host, port: 1 },
      metadataBytes: 0,
      fetchMetadata: () => {
        this.asked++;
        this.fetching = true;
        this.arrived(0);
      },
      cancelMetadata: () => {
        this.fetching = false;
        this.arrived(0);
      },
    };
  }

  part(): void {
    this.isParted = true;
    this.isReady = false;
  }

  /** This many bytes of its metadata have arrived. */
  arrived(bytes: number): void {
    this.link.metadataBytes = bytes;
  }
}

class Rig {
  readonly clock = new FakeClock();
  readonly sessions: Source[] = [];
  readonly budget: MetadataBudget;
  readonly fetch: MetadataFetch<Source>;
  isCrowded = false;

  constructor(budget = new MetadataBudget()) {
    this.budget = budget;
    // The rig has the sources, as `Peers` has its sessions.
    this.fetch = new MetadataFetch(this.clock, budget, this);
  }

  add(count: number, sizeBytes: number | null, network = 1): Source[] {
    const made = Array.from({ length: count }, (_, i) => {
      return new Source(`10.${network}.0.${i}`, sizeBytes, this.clock.monotonic());
    });
    this.sessions.push(...made);
    return made;
  }

  get parted(): Source[] {
    return this.sessions.filter(({ isParted }) => isParted);
  }

  get fetching(): Source[] {
    return this.sessions.filter(({ fetching }) => fetching);
  }
}

test("MetadataFetch.pump() asks four peers, and another when one fails", () => {
  const rig = new Rig();
  const sources = rig.add(6, BLOCK);
  rig.add(1, null);
  rig.fetch.pump();
  rig.fetch.pump();
  assertEquals(rig.fetching, sources.slice(0, 4));
  sources[1]!.metadataUseless = true;
  sources[1]!.fetching = false;
  rig.fetch.pump();
  assertEquals(rig.fetching.length, 4);
  assert(sources[4]!.fetching);
  rig.fetch.close();
});

test("MetadataFetch.progress is that of the peer which is furthest", () => {
  const rig = new Rig();
  assertEquals(rig.fetch.progress, null);
  const [first, second] = rig.add(2, 4 * BLOCK);
  rig.fetch.pump();
  assertEquals(rig.fetch.progress, { receivedBytes: 0, totalBytes: 4 * BLOCK });
  first!.arrived(BLOCK);
  second!.arrived(3 * BLOCK);
  assertEquals(rig.fetch.progress, { receivedBytes: 3 * BLOCK, totalBytes: 4 * BLOCK });
  rig.fetch.close();
});

test("MetadataFetch asks more peers within a second when some send nothing or only drip", () => {
  const rig = new Rig();
  const drips = rig.add(3, HUGE, 1);
  const mute = rig.add(1, BLOCK, 2);
  rig.fetch.pump();
  const [honest] = rig.add(1, 100 * BLOCK, 3);
  rig.fetch.pump();
  assertEquals(honest!.asked, 0);
  for (const drip of drips) drip.arrived(BLOCK);
  rig.clock.advance(750);
  assertEquals(honest!.asked, 1);
  // The slow ones continue: they may be the only ones.
  assertEquals(rig.fetching.length, 5);
  assertEquals([...drips, ...mute].map(({ asked }) => asked), [1, 1, 1, 1]);
  rig.fetch.close();
});

test("MetadataFetch asks no more peers while those asked are fast enough", () => {
  const rig = new Rig();
  const sources = rig.add(6, 60 * BLOCK);
  rig.fetch.pump();
  const fast = rig.fetching;
  for (let ms = 0; ms < 2_500; ms += 250) {
    for (const source of fast) source.arrived(source.link.metadataBytes + 5 * BLOCK);
    rig.clock.advance(250);
  }
  assertEquals(rig.fetching, fast);
  assertEquals(sources.map(({ asked }) => asked), [1, 1, 1, 1, 0, 0]);
  rig.fetch.close();
});

test("MetadataFetch replaces the slowest once twelve are being asked, until every peer has been asked", () => {
  const rig = new Rig();
  const drips = rig.add(40, BLOCK * 64);
  rig.fetch.pump();
  let most = 0;
  for (let ms = 0; ms < 15_000; ms += 250) {
    rig.clock.advance(250);
    for (const source of rig.fetching) source.arrived(BLOCK);
    most = Math.max(most, rig.fetching.length);
  }
  assertEquals(most, 12);
  assert(drips.every(({ asked }) => asked === 1), "a peer was asked twice, or never");
  // A newcomer is asked at once; the others go on.
  const [honest] = rig.add(1, BLOCK * 64, 2);
  rig.fetch.pump();
  assertEquals([honest!.asked, rig.fetching.length], [1, 12]);
  rig.fetch.close();
});

test("MetadataFetch prefers a host that is not being asked, then the smaller metadata", () => {
  const rig = new Rig();
  for (let i = 0; i < 6; i++) rig.sessions.push(new Source("10.9.9.9", BLOCK));
  rig.sessions.push(new Source("10.1.1.1", HUGE), new Source("10.1.1.2", 2 * BLOCK), new Source("10.1.1.3", BLOCK));
  rig.fetch.pump();
  assertEquals(rig.fetching.map(({ link }) => link.remote.host).sort(), [
    "10.1.1.1",
    "10.1.1.2",
    "10.1.1.3",
    "10.9.9.9",
  ]);
  rig.fetch.close();
});

test("MetadataFetch gives memory back when a fetch fails, its peer leaves, or it ends", () => {
  const budget = new MetadataBudget();
  const rig = new Rig(budget);
  const sources = rig.add(3, HUGE);
  rig.fetch.pump();
  assertEquals(rig.fetching.length, 3);
  sources[0]!.isReady = false;
  sources[1]!.metadataUseless = true;
  rig.fetch.pump();
  rig.fetch.close();
  assertEquals(rig.sessions[2]!.fetching, false);
  assert(budget.take(METADATA_BUDGET_BYTES / 8));
});

test("MetadataBudget.take() leaves room for small metadata however much huge metadata is under way", () => {
  const budget = new MetadataBudget();
  let huge = 0;
  while (budget.take(HUGE)) huge++;
  assertEquals(huge, 5);
  while (budget.take(1 << 20)) huge++;
  assert(budget.take(200_000));
});

test("MetadataFetch.round() makes room in a full swarm by dropping peers that offer no metadata", () => {
  const rig = new Rig();
  const silent = rig.add(10, null);
  rig.isCrowded = true;
  rig.clock.advance(4_000);
  rig.fetch.round(rig.clock.monotonic());
  assertEquals(rig.parted, []);
  rig.clock.advance(1_000);
  rig.fetch.round(rig.clock.monotonic());
  assertEquals(rig.parted, silent.slice(0, 4));
  rig.isCrowded = false;
  rig.fetch.round(rig.clock.monotonic());
  assertEquals(rig.parted.length, 4);
});
