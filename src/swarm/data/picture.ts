/** A swarm as shown to people: which pieces of a file are downloaded or under way, where readers are, how fast peers send. */
import type { Bitfield } from "../../bytes/bitfield.ts";
import type { CheckProgress, PieceStore } from "../../storage/piece-store.ts";
import type { Metainfo } from "../../metainfo/types.ts";
import type { MetadataProgress } from "../metadata/metadata-fetch.ts";
import type { PeerSession } from "../torrent/peer-session.ts";
import type { Transfer } from "./transfer.ts";

/** Most cells of a picture, as many as a narrow screen can show. In larger files a cell stands for several pieces. */
export const MAX_CELLS = 200;
/** Most peers in a picture, fastest first: the response stays small. */
export const MAX_SHOWN_PEERS = 30;

/** The pieces of one file, in at most `MAX_CELLS` cells of (almost) equal length. */
export interface PieceCells {
  /** Pieces of the file, including those that it shares with its neighbours. */
  readonly pieceCount: number;
  /** How much of each cell is downloaded: 0 nothing, 9 all. */
  readonly here: readonly number[];
  /** Cells with pieces under way. */
  readonly underWay: readonly number[];
  /** Cells where a reader is. */
  readonly readers: readonly number[];
}

/** One connected peer. */
export interface PeerFigures {
  /** `host:port`, with brackets around IPv6. */
  readonly address: string;
  /** Name of its client; null when it does not say. */
  readonly client: string | null;
  readonly downloadBytesPerSecond: number;
  readonly uploadBytesPerSecond: number;
  /** The peer has every piece. */
  readonly isSeed: boolean;
  /** The peer does not choke us. */
  readonly isOpen: boolean;
}

/** The whole picture. */
export interface SwarmPicture {
  /** null until the metadata is known. */
  readonly cells: PieceCells | null;
  readonly peers: readonly PeerFigures[];
  /** Progress of hashing the files on disk; null when that is not under way. */
  readonly checking: CheckProgress | null;
  /** How much of the metadata has arrived; null once it is known, and while nobody sends it. */
  readonly metadata: MetadataProgress | null;
}

/** What a picture shows of a swarm. */
export interface PictureFacts {
  /** null while the metadata is unknown. */
  readonly transfer: Transfer | null;
  readonly readers: Iterable<{ readonly position: number }>;
  readonly sessions: Iterable<PeerSession>;
  readonly store: Pick<PieceStore, "checking"> | null;
  readonly fetcher: { readonly progress: MetadataProgress | null };
}

/** The picture of a swarm. */
export function swarmPicture(
  { transfer, readers, sessions, store, fetcher }: PictureFacts,
  fileIndex: number,
  nowMs: number,
): SwarmPicture {
  const cells = transfer === null ? null : pieceCells(transfer.metainfo, fileIndex, {
    have: transfer.bank.have,
    underWay: transfer.underWay,
    readers: [...readers].map(({ position }) => position),
  });
  const metadata = transfer === null ? fetcher.progress : null;
  return { cells, peers: peerFigures(sessions, nowMs), checking: store?.checking ?? null, metadata };
}

/** The cells of file `fileIndex`. `readers`: offsets in the torrent, bytes. */
export function pieceCells(
  { files, pieceLengthBytes }: Pick<Metainfo, "files" | "pieceLengthBytes">,
  fileIndex: number,
  facts: { readonly have: Bitfield; readonly underWay: Iterable<number>; readonly readers: Iterable<number> },
): PieceCells | null {
  const file = files[fileIndex];
  if (file === undefined || file.sizeBytes === 0) return null;
  const first = Math.floor(file.offset / pieceLengthBytes);
  const pieceCount = Math.ceil((file.offset + file.sizeBytes) / pieceLengthBytes) - first;
  const cellCount = Math.min(pieceCount, MAX_CELLS);
  const cellOf = (piece: number) => {
    const nth = piece - first;
    return nth < 0 || nth >= pieceCount ? [] : [Math.floor(nth * cellCount / pieceCount)];
  };
  const [counts, total] = [new Uint32Array(cellCount), new Uint32Array(cellCount)];
  for (let piece = first; piece < first + pieceCount; piece++) {
    for (const cell of cellOf(piece)) {
      total[cell]!++;
      if (facts.have.has(piece)) counts[cell]!++;
    }
  }
  const cells = (pieces: Iterable<number>) => [...new Set([...pieces].flatMap(cellOf))].sort((a, b) => a - b);
  return {
    pieceCount,
    // 9 is only for complete cells.
    here: [...counts].map((count, cell) => Math.floor(9 * count / total[cell]!)),
    underWay: cells(facts.underWay),
    readers: cells([...facts.readers].map((offset) => Math.floor(offset / pieceLengthBytes))),
  };
}

/** Figures of the fastest peers. */
function peerFigures(sessions: Iterable<PeerSession>, nowMs: number): PeerFigures[] {
  const figures = [...sessions].filter(({ isReady }) => isReady).map((session) => ({
    address: addressText(session),
    client: session.extensions?.client ?? null,
    downloadBytesPerSecond: Math.round(session.downloadRate.rate(nowMs)),
    uploadBytesPerSecond: Math.round(session.uploadRate.rate(nowMs)),
    isSeed: session.isSeed,
    isOpen: !session.peerChoking,
  }));
  const speed = ({ downloadBytesPerSecond, uploadBytesPerSecond }: PeerFigures) =>
    downloadBytesPerSecond + uploadBytesPerSecond;
  return figures.sort((a, b) => speed(b) - speed(a)).slice(0, MAX_SHOWN_PEERS);
}

function addressText({ link, host }: PeerSession): string {
  return `${host.includes(":") ? `[${host}]` : host}:${link?.remote.port ?? 0}`;
}
