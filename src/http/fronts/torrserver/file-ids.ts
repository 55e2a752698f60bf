/** How TorrServer numbers the files of a torrent: from 1, in the order of their paths. */
import { type AnyMetainfo, isLive } from "../../../metainfo/live.ts";

/** A file under its number. */
export interface NumberedFile {
  readonly id: number;
  /** With the torrent's folder. */
  readonly path: string;
  readonly sizeBytes: number;
  /** As `_idx` of playback. */
  readonly index: number;
}

/** A run of digits, or one other character. */
const TOKEN = /\d+|[^\d]/gsu;

/** `path` in parts that are compared one by one. */
function tokensOf(path: string): readonly string[] {
  return path.match(TOKEN) ?? [];
}

const isNumber = (token: string) => /^\d/.test(token);

function compareTokens(a: string, b: string): number {
  if (!isNumber(a) || !isNumber(b)) return Number(isNumber(b)) - Number(isNumber(a)) || (a < b ? -1 : a > b ? 1 : 0);
  const [x, y] = [a.replace(/^0+/, ""), b.replace(/^0+/, "")];
  return x.length - y.length || (x < y ? -1 : x > y ? 1 : 0);
}

/**
 * Compares paths as the original does where its order is one: numbers by value and before everything else, the rest by
 * code points.
 */
export function comparePaths(a: string, b: string): number {
  return compareLists([a, tokensOf(a)], [b, tokensOf(b)]);
}

type Parsed = readonly [path: string, tokens: readonly string[]];

function compareLists([a, x]: Parsed, [b, y]: Parsed): number {
  for (let i = 0; i < x.length && i < y.length; i++) {
    const order = compareTokens(x[i]!, y[i]!);
    if (order !== 0) return order;
  }
  return x.length - y.length || (a < b ? -1 : a > b ? 1 : 0);
}

/**
 * The files of a torrent. Padding has numbers, as in the original, but is left out. A broadcast is one file
 * without a length.
 */
export function numberedFiles(metainfo: AnyMetainfo): readonly NumberedFile[] {
  if (isLive(metainfo)) return [{ id: 1, path: `${metainfo.name}.ts`, sizeBytes: 0, index: 0 }];
  const folder = metainfo.multiFile ?? metainfo.files.length > 1 ? `${metainfo.name}/` : "";
  return metainfo.files
    .map((file) => ({ file, parsed: [`${folder}${file.path}`, tokensOf(file.path)] as const }))
    .sort((a, b) => compareLists(a.parsed, b.parsed) || a.file.index - b.file.index)
    .map(({ file, parsed: [path] }, at) => ({ file, path, id: at + 1 }))
    .filter(({ file }) => !file.padding)
    .map(({ file, path, id }) => ({ id, path, sizeBytes: file.sizeBytes, index: file.index }));
}

/** The last part of a path. */
export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
