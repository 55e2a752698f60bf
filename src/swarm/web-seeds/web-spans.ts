/** Where a web seed keeps the bytes of a torrent: in files (BEP 19, GetRight style), or behind a script (BEP 17). */
import { percentEncoded } from "../../bytes/percent.ts";
import type { Metainfo, MetainfoFile } from "../../metainfo/types.ts";
import { pieceBytes } from "../data/layout.ts";

/** A stretch of bytes on a web server. Those of padding files have `url` null: they are zero and not fetched. */
export interface WebSpan {
  readonly url: string | null;
  /** Null: the URL names the very bytes. */
  readonly file: MetainfoFile | null;
  /** Where they begin in what the URL names, bytes. */
  readonly offset: number;
  readonly length: number;
}

/** The spans that hold `[start, start + length)` of the torrent, in order. */
export function webSpans(metainfo: Metainfo, base: string, start: number, length: number): WebSpan[] {
  const spans: WebSpan[] = [];
  const end = start + length;
  for (const file of metainfo.files) {
    const from = Math.max(start, file.offset);
    const to = Math.min(end, file.offset + file.sizeBytes);
    if (from >= to) continue;
    const url = file.padding ? null : fileUrl(metainfo, base, file);
    spans.push({ url, file, offset: from - file.offset, length: to - from });
  }
  return spans;
}

/** The same for a server of BEP 17, which is asked for one piece, or a part of it, at a time. */
export function pieceSpans(metainfo: Metainfo, base: string, start: number, length: number): WebSpan[] {
  const spans: WebSpan[] = [];
  const begin = `${base}${base.includes("?") ? "&" : "?"}info_hash=${percentEncoded(metainfo.infohash)}&piece=`;
  for (let at = start; at < start + length;) {
    const piece = Math.floor(at / metainfo.pieceLengthBytes);
    const from = at - piece * metainfo.pieceLengthBytes;
    const whole = pieceBytes(metainfo, piece);
    const bytes = Math.min(whole - from, start + length - at);
    const ranges = bytes === whole ? "" : `&ranges=${from}-${from + bytes - 1}`;
    spans.push({ url: `${begin}${piece}${ranges}`, file: null, offset: 0, length: bytes });
    at += bytes;
  }
  return spans;
}

/** BEP 19: a single file is the URL itself unless that ends in a slash; several lie in a directory named like the torrent. */
function fileUrl(metainfo: Metainfo, base: string, file: MetainfoFile): string {
  const multiFile = metainfo.multiFile ?? metainfo.files.length > 1;
  const name = metainfo.webName ?? encodePath(metainfo.name);
  if (!multiFile) return base.endsWith("/") ? base + name : base;
  const root = base.endsWith("/") ? base : `${base}/`;
  return `${root}${name}/${file.webPath ?? encodePath(file.path)}`;
}

function encodePath(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}
