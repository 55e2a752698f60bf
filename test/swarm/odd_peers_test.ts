/** Seeds as users have met them, at which other clients stopped, asked forever or crashed. */
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { decodeBencode } from "../../src/bytes/bencode.ts";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { frame } from "../wire/support/links.ts";
import { hurried, Lab, soon } from "./support/lab.ts";
import { bitfield, CHOKE, type RawLink, type RawScript, type RawSeed, rawSeed, UNCHOKE } from "./support/raw-seed.ts";
import { makeTorrent, type TestTorrent } from "./support/torrent.ts";

const all = () => true;
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Reads the whole torrent from seeds, which are known by address alone if `isMagnet`. */
async function readFrom(
  torrent: TestTorrent,
  scripts: readonly RawScript[],
  check: (seeds: readonly RawSeed[]) => void = () => {},
  { isMagnet = false, hurry = 1 } = {},
): Promise<void> {
  await Lab.run(async (lab) => {
    const seeds: RawSeed[] = [];
    for (const script of scripts) seeds.push(await rawSeed(torrent, script));
    try {
      const { metainfo, data } = torrent;
      const node = await lab.node({ ports: hurried(lab.ports, hurry) });
      const addresses = seeds.map(({ address }) => `&x.pe=127.0.0.1:${address.port}`).join("");
      const magnet = parseMagnet(`magnet:?xt=urn:btih:${metainfo.infohashHex}${addresses}`);
      const { swarm } = node.join(isMagnet ? { magnet } : { magnet, metainfo });
      await swarm.metadata(soon());
      assertEquals(await swarm.openReader(0).read(0, data.length, { signal: soon() }), data);
      check(seeds);
    } finally {
      for (const seed of seeds) await seed.close();
    }
  });
}

/** Answers requests while it does not choke, and chokes and unchokes all the time. */
function flapping(periodMs: number): RawScript {
  const open = new WeakSet<RawLink>();
  return {
    isPlain: true,
    hello: (link) => {
      link.send(bitfield(9, all));
      let isOpen = false;
      const timer = setInterval(() => {
        if (link.isClosed) return clearInterval(timer);
        isOpen = !isOpen;
        link.send(isOpen ? UNCHOKE : CHOKE);
        isOpen ? open.add(link) : open.delete(link);
      }, periodMs);
    },
    request: (link, ...block) => void (open.has(link) && link.block(...block)),
  };
}

/** Answers nothing, chokes without a word about what it owes, and unchokes again. */
function forgetful(): RawScript {
  let asked = 0;
  let isForgetting = true;
  return {
    isPlain: true,
    request: (link, ...block) => {
      if (!isForgetting) return link.block(...block);
      if (asked++ > 0) return;
      setTimeout(() => link.send(CHOKE), 100);
      setTimeout(() => {
        isForgetting = false;
        link.send(UNCHOKE);
      }, 200);
    },
  };
}

const SEEDS: readonly [name: string, script: () => RawScript][] = [
  ["says what it has in a bitfield with holes, and in haves that follow", () => ({
    hello: (link) => {
      link.send(bitfield(9, (piece) => piece % 3 !== 0), frame(4, 3), frame(4, 0), frame(4, 6), UNCHOKE);
    },
  })],
  ["sends an empty bitfield message, and haves that follow", () => ({
    hello: (link) => {
      link.send(frame(5), UNCHOKE);
      for (let piece = 0; piece < 9; piece++) link.send(frame(4, piece));
    },
  })],
  ["repeats its bitfield and its haves", () => ({
    hello: (link) => {
      for (let i = 0; i < 5; i++) link.send(bitfield(9, all));
      for (let piece = 0; piece < 9; piece++) link.send(frame(4, piece), frame(4, piece));
      link.send(frame(14), UNCHOKE);
    },
  })],
  ["says that it only uploads, has nothing, and then has everything", () => ({
    hello: (link) => {
      link.extended(0, { m: {}, upload_only: 1 });
      link.send(frame(15));
      for (let piece = 0; piece < 9; piece++) link.send(frame(4, piece));
      link.send(UNCHOKE);
    },
  })],
  ["sends ut_pex with cut lists, too few flags, and peers that nobody can reach", () => ({
    hello: (link) => {
      link.extended(0, { m: { ut_pex: 1 } });
      link.send(bitfield(9, all), UNCHOKE);
    },
    message: (link, id, body) => {
      const theirs = id !== 0 ? undefined : (decodeBencode(body) as { m?: { ut_pex?: number } }).m?.ut_pex;
      const added = new Uint8Array([10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x1a, 0xe1, 255, 255, 255, 255, 0, 1, 9]);
      if (theirs !== undefined) link.extended(theirs, { added, "added.f": new Uint8Array(1), dropped: "x", added6: 3 });
    },
  })],
  ["chokes and unchokes twenty times a second", () => flapping(50)],
  ["chokes without an answer to what was asked, and unchokes again", forgetful],
  ["unchokes some time after it was told of interest", () => ({
    hello: (link) => link.send(bitfield(9, all)),
    interested: (link) => void setTimeout(() => link.send(UNCHOKE), 300),
  })],
  ["sends the blocks of each request backwards, with others between", () => {
    const waiting: Parameters<RawLink["block"]>[] = [];
    return {
      request: (link, ...block) => {
        waiting.push(block);
        setTimeout(() => {
          for (const late of waiting.splice(0).reverse()) {
            link.send(new Uint8Array(4), frame(4, 0));
            link.block(...late);
          }
        }, 20);
      },
    };
  }],
  ["keeps ten requests and silently drops the others", () => {
    let waiting = 0;
    return {
      isPlain: true,
      hello: (link) => {
        link.extended(0, { m: {}, reqq: 10 });
        link.send(bitfield(9, all), UNCHOKE);
      },
      request: (link, ...block) => {
        if (waiting >= 10) return;
        waiting++;
        setTimeout(() => {
          waiting--;
          link.block(...block);
        }, 20);
      },
    };
  }],
  ["rejects every other request", () => {
    let asked = 0;
    return {
      request: (link, piece, offset, length) => {
        if (asked++ % 2 === 0) link.send(frame(16, piece, offset, length));
        else link.block(piece, offset, length);
      },
    };
  }],
];
for (const [name, script] of SEEDS) {
  test(`a torrent is read from a seed that ${name}`, async () => {
    const torrent = await makeTorrent({ bytes: 9 * 65_536 - 1 });
    await readFrom(torrent, [script()], ([seed]) => {
      assert(seed!.requests.length < 200, `${seed!.requests.length} requests`);
      assert(seed!.connections <= 3, `${seed!.connections} connections`);
    });
  });
}

test("a torrent whose last piece is one byte is read from a peer", async () => {
  const torrent = await makeTorrent({ bytes: 2 * 65_536 + 1 });
  await readFrom(torrent, [{}], ([seed]) => {
    assert(seed!.requests.some(({ piece, length }) => piece === 2 && length === 1));
  });
});

/** Sends its metadata as `data` makes the answer to the request of a piece; null: nothing. */
function describing(
  torrent: TestTorrent,
  data: (piece: number) => { total?: number; bytes: Uint8Array } | null,
  asked: number[] = [],
): RawScript {
  const { infoBytes } = torrent.metainfo;
  let theirs = 0;
  return {
    hello: (link) => {
      link.extended(0, { m: { ut_metadata: 3 }, metadata_size: infoBytes.length });
      link.send(bitfield(torrent.metainfo.pieceCount, all), UNCHOKE);
    },
    message: (link, id, body) => {
      const message = decodeBencode(body) as { m?: { ut_metadata?: number }; msg_type?: number; piece?: number };
      if (id === 0) theirs = message.m?.ut_metadata ?? theirs;
      if (id !== 3 || message.msg_type !== 0) return;
      asked.push(message.piece!);
      const answer = data(message.piece!);
      if (answer === null) return;
      const { total = infoBytes.length, bytes } = answer;
      link.extended(theirs, { msg_type: 1, piece: message.piece!, total_size: total }, bytes);
    },
  };
}

/** Metadata of exactly 32 KiB, as its hashes and its name fill them. */
async function evenTorrent(): Promise<TestTorrent> {
  const torrent = await makeTorrent({ bytes: 1_630 * 16_384, pieceLength: 16_384 });
  return torrent;
}

test("metadata is read from a peer that takes the length of a piece for that of all", async () => {
  const torrent = await evenTorrent();
  const { infoBytes } = torrent.metainfo;
  const part = (piece: number) => infoBytes.subarray(piece * 16_384, (piece + 1) * 16_384);
  await Lab.run(async (lab) => {
    const seed = await rawSeed(
      torrent,
      describing(torrent, (piece) => ({ total: part(piece).length, bytes: part(piece) })),
    );
    const node = await lab.node();
    const magnet = parseMagnet(
      `magnet:?xt=urn:btih:${torrent.metainfo.infohashHex}&x.pe=127.0.0.1:${seed.address.port}`,
    );
    const { swarm } = node.join({ magnet });
    assertEquals((await swarm.metadata(soon())).infohashHex, torrent.metainfo.infohashHex);
    await seed.close();
  });
});

for (
  const [name, bytes] of [
    ["an empty piece", () => new Uint8Array()],
    ["all of it in one piece", (all: Uint8Array) => all],
    ["another piece than asked", (all: Uint8Array) => all.subarray(1, 16_385)],
  ] as const
) {
  test(`a peer that sends ${name} of its metadata is asked a few times at most, and another one sends it`, async () => {
    const torrent = await evenTorrent();
    const { infoBytes, infohashHex } = torrent.metainfo;
    const asked: number[] = [];
    await Lab.run(async (lab) => {
      const odd = await rawSeed(torrent, describing(torrent, () => ({ bytes: bytes(infoBytes) }), asked));
      const good = await rawSeed(
        torrent,
        describing(torrent, (piece) => ({ bytes: infoBytes.subarray(piece * 16_384, (piece + 1) * 16_384) })),
      );
      const node = await lab.node();
      const join = (seed: RawSeed) =>
        node.join({ magnet: parseMagnet(`magnet:?xt=urn:btih:${infohashHex}&x.pe=127.0.0.1:${seed.address.port}`) });
      const { swarm } = join(odd);
      await wait(300);
      join(good);
      assertEquals((await swarm.metadata(soon())).infohashHex, infohashHex);
      assert(asked.length < 10, `asked ${asked.length} times`);
      await odd.close();
      await good.close();
    });
  });
}
