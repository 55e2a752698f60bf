/**
 * Our readers compared with parse-torrent, which webtorrent reads with. The engine does not use it: it decodes a whole file
 * before it looks at any size, and limits nothing.
 */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
// @ts-types="./parse-torrent.d.ts"
import parseTorrent from "parse-torrent";
import { toHex } from "../../src/bytes/hex.ts";
import { parseMagnet } from "../../src/metainfo/magnet.ts";
import { parseTransportFile } from "../../src/metainfo/transport-file.ts";
import { fileWith, seeded } from "./support.ts";

const RUNS = 50;

test("parseTransportFile() reads from files of all shapes what parse-torrent reads", async () => {
  const random = seeded(7);
  const int = (end: number) => Math.floor(random() * end);
  const word = () => ["clip", "Ünïcode", "日本語", "a b", "x.y", "part 1"][int(6)]!;
  for (let run = 0; run < RUNS; run++) {
    const pieceLength = 16384 << int(4);
    const sizes = Array.from({ length: 1 + int(5) }, () => 1 + int(200_000));
    const isMulti = random() < 0.6;
    const total = isMulti ? sizes.reduce((sum, size) => sum + size, 0) : sizes[0]!;
    const bytes = fileWith({
      name: `${word()} ${run}`,
      length: isMulti ? undefined : total,
      files: isMulti ? sizes.map((length, i) => ({ length, path: [word(), `${i} ${word()}.ts`] })) : undefined,
      "piece length": pieceLength,
      pieces: new Uint8Array(20 * Math.ceil(total / pieceLength)).map(() => int(256)),
      private: random() < 0.3 ? 1 : undefined,
    }, {
      announce: "http://one.test/announce",
      "announce-list": [["http://one.test/announce", "udp://two.test:80"], ["http://three.test/a"]],
      "url-list": random() < 0.5 ? "http://seed.test/a" : ["http://seed.test/a", "https://seed.test/b/"],
    });
    const [ours, theirs] = [await parseTransportFile(bytes), await parseTorrent(bytes)];
    const digests = Array.from(
      { length: ours.pieceCount },
      (_, i) => toHex(ours.pieceHashes.subarray(20 * i, 20 * i + 20)),
    );
    assertEquals({
      infoHash: ours.infohashHex,
      name: ours.name,
      private: ours.isPrivate,
      length: ours.totalBytes,
      pieceLength: ours.pieceLengthBytes,
      pieces: digests,
      announce: ours.trackers.flat(),
      urlList: ours.webSeeds,
      files: ours.files.map(({ path, sizeBytes: length, offset }) => ({
        path: ours.multiFile ? `${ours.name}/${path}` : path,
        length,
        offset,
      })),
    }, {
      infoHash: theirs.infoHash,
      name: theirs.name!,
      private: theirs.private ?? false,
      length: theirs.length!,
      pieceLength: theirs.pieceLength!,
      pieces: [...theirs.pieces!],
      announce: [...theirs.announce],
      urlList: [...theirs.urlList],
      files: theirs.files!.map(({ path, length, offset }) => ({ path: path.replaceAll("\\", "/"), length, offset })),
    });
  }
});

test("parseMagnet() reads from links what magnet-uri reads", async () => {
  for (
    const rest of [
      "",
      "&dn=Big%20Buck+Bunny",
      "&tr=http%3A%2F%2Fone.test%2Fannounce&tr=udp://two.test:80",
      "&ws=http://seed.test/a&ws=https%3A%2F%2Fseed.test%2Fb%2F",
      "&x.pe=10.0.0.1:6881&x.pe=host.test:1",
      "&dn=%E6%97%A5%E6%9C%AC&tr=http://one.test/a&tr=http://one.test/a",
    ]
  ) {
    for (const id of ["dd8255ecdc7ca55fb0bbf81323d87062db1f6d1c", "3WBFL3G4PSSV7MF37AJSHWDQMLNR63I4"]) {
      const link = `magnet:?xt=urn:btih:${id}${rest}`;
      const [ours, theirs] = [parseMagnet(link), await parseTorrent(link)];
      assertEquals({
        infoHash: ours.infohashHex,
        name: ours.name,
        announce: [...new Set(ours.trackers)],
        urlList: ours.webSeeds,
        peerAddresses: ours.peers,
      }, {
        infoHash: theirs.infoHash,
        name: theirs.name ?? null,
        announce: [...theirs.announce],
        urlList: [...theirs.urlList],
        peerAddresses: [...theirs.peerAddresses ?? []],
      }, link);
    }
  }
});
