/**
 * Maps the bytes of a torrent to files on disk. A *unit* is one file there. Without a limit, units are the torrent's files,
 * so that other programs can use them; with a limit they are extents of one piece or about 1 MiB of small pieces, so
 * that freeing space is an unlink (the runtimes cannot punch holes).
 */
import { diskComponent, diskPaths } from "./disk-names.ts";
import type { TorrentLayout } from "./piece-store.ts";

/** A run of bytes within one unit. */
export interface UnitRun {
  readonly unit: number;
  /** Offset in the unit. */
  readonly position: number;
  readonly length: number;
  /** Offset of this part in the requested range. */
  readonly at: number;
}

/** Layout of a torrent on disk. */
export interface Placement {
  readonly kind: "files" | "extents";
  readonly unitCount: number;
  /** Absolute path. */
  path(unit: number): string;
  unitBytes(unit: number): number;
  /** True for a padding file (BEP 47): its zeros need not be stored. */
  isPadding(unit: number): boolean;
  /** The parts of `[offset, offset + length)` of the torrent's byte space, in order. */
  locate(offset: number, length: number): UnitRun[];
  /** Pieces that have a byte in the unit: `[first, end)`. */
  piecesOf(unit: number): { readonly first: number; readonly end: number };
}

/** Target size of extents of small pieces, bytes. */
const EXTENT_BYTES = 1024 * 1024;

/** Number of pieces per extent. */
export function piecesPerExtent(layout: TorrentLayout): number {
  return Math.max(1, Math.floor(EXTENT_BYTES / layout.pieceLengthBytes));
}

/** Extents in `directory`. */
export function extentPlacement(layout: TorrentLayout, directory: string): Placement {
  const perExtent = piecesPerExtent(layout);
  const extentBytes = perExtent * layout.pieceLengthBytes;
  return {
    kind: "extents",
    unitCount: Math.ceil(layout.pieceCount / perExtent),
    path: (unit) => `${directory}/${unit}.extent`,
    unitBytes: (unit) => Math.min(extentBytes, layout.totalBytes - unit * extentBytes),
    isPadding: () => false,
    piecesOf: (unit) => ({ first: unit * perExtent, end: Math.min((unit + 1) * perExtent, layout.pieceCount) }),
    locate(offset, length) {
      const parts: UnitRun[] = [];
      for (let at = 0; at < length;) {
        const unit = Math.floor((offset + at) / extentBytes);
        const position = offset + at - unit * extentBytes;
        const partLength = Math.min(length - at, extentBytes - position);
        parts.push({ unit, position, length: partLength, at });
        at += partLength;
      }
      return parts;
    },
  };
}

const isFolder = ({ files, name, multiFile }: TorrentLayout) =>
  multiFile ?? (files.length > 1 || files[0]?.path !== name);

/** Paths of the torrent's files as it names them: `name`, or `name/path…` when there are several. */
export function namedPaths(layout: TorrentLayout): string[] {
  return layout.files.map(({ path }) => isFolder(layout) ? `${layout.name}/${path}` : path);
}

/** Paths under which millrace stores these files: the same, in names that every file system accepts. */
export function storedPaths(layout: TorrentLayout): string[] {
  const below = isFolder(layout) ? `${diskComponent(layout.name)}/` : "";
  return diskPaths(layout.files.map(({ path }) => path)).map((path) => below + path);
}

/** The torrent's own files, at `paths` below `directory`. */
export function filePlacement(
  layout: TorrentLayout,
  directory: string,
  paths: readonly string[] = storedPaths(layout),
): Placement {
  const { files, pieceLengthBytes } = layout;
  /** Index of the last file that begins at or before `offset` (if several do, a non-empty one). */
  const fileAt = (offset: number): number => {
    let low = 0;
    let high = files.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (files[middle]!.offset <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  return {
    kind: "files",
    unitCount: files.length,
    path: (unit) => `${directory}/${paths[unit]!}`,
    unitBytes: (unit) => files[unit]!.sizeBytes,
    isPadding: (unit) => files[unit]!.padding === true,
    piecesOf(unit) {
      const { offset, sizeBytes } = files[unit]!;
      const first = Math.floor(offset / pieceLengthBytes);
      return { first, end: sizeBytes === 0 ? first : Math.ceil((offset + sizeBytes) / pieceLengthBytes) };
    },
    locate(offset, length) {
      const parts: UnitRun[] = [];
      let at = 0;
      for (let unit = fileAt(offset); at < length && unit < files.length; unit++) {
        const file = files[unit]!;
        const position = offset + at - file.offset;
        const partLength = Math.min(length - at, file.sizeBytes - position);
        if (partLength <= 0) continue;
        parts.push({ unit, position, length: partLength, at });
        at += partLength;
      }
      return parts;
    },
  };
}
