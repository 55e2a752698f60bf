/** Where a web seed keeps the bytes of a torrent (BEP 19, GetRight style). */
import type { Metainfo, MetainfoFile } from "../../metainfo/types.ts";

/** A stretch of one file on a web server. Bytes of padding files have `url` null: they are zero and not fetched. */
export interface WebSpan {
  readonly url: string | null;
  readonly file: MetainfoFile;
  /** Offset in the file, bytes. */
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
