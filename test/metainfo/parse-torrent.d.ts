/** The part of parse-torrent that tests compare with. */
interface Parsed {
  readonly infoHash: string;
  readonly name?: string;
  readonly announce: readonly string[];
  readonly urlList: readonly string[];
  readonly private?: boolean;
  readonly length?: number;
  readonly pieceLength?: number;
  readonly pieces?: readonly string[];
  readonly peerAddresses?: readonly string[];
  readonly files?: readonly { readonly path: string; readonly length: number; readonly offset: number }[];
}
export default function parseTorrent(torrent: Uint8Array | string): Promise<Parsed>;
