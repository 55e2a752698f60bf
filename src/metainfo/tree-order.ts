/** Files as torrents of version 2 (BEP 52) and hybrids (BEP 47) order them and lay them out. */
import { encodeBencode } from "../bytes/bencode.ts";
import { concatBytes } from "../bytes/hex.ts";

const ENCODER = new TextEncoder();

/** A file of a torrent. */
export interface PlacedFile {
  /** `/`-separated, below the torrent's name; of a single file the name itself. */
  readonly path: string;
  readonly sizeBytes: number;
}

/** `files` in the order of the file tree: names are sorted by their bytes, directory by directory. */
export function inTreeOrder<File extends PlacedFile>(files: readonly File[]): File[] {
  const split = files.map((file) => ({ file, names: file.path.split("/").map((name) => ENCODER.encode(name)) }));
  split.sort((a, b) => {
    const at = a.names.findIndex((name, depth) => compare(name, b.names[depth]) !== 0);
    return at < 0 ? 0 : compare(a.names[at]!, b.names[at]);
  });
  return split.map(({ file }) => file);
}

/** `undefined` comes first. */
function compare(a: Uint8Array, b: Uint8Array | undefined): number {
  if (b === undefined) return 1;
  const at = a.findIndex((byte, index) => byte !== b[index]);
  return at < 0 ? a.length - b.length : at >= b.length ? 1 : a[at]! - b[at]!;
}

/**
 * The list of files of version 1 in a hybrid: `files`, in the order of the tree, with padding files between them, so that each
 * begins with a piece of its own. Nothing is padded after the last byte.
 */
export function paddedFiles<File extends PlacedFile>(
  files: readonly File[],
  pieceLengthBytes: number,
): (File | (PlacedFile & { readonly padding: true }))[] {
  const last = files.findLastIndex(({ sizeBytes }) => sizeBytes > 0);
  return files.flatMap((file, index) => {
    const sizeBytes = index < last ? (pieceLengthBytes - file.sizeBytes % pieceLengthBytes) % pieceLengthBytes : 0;
    return sizeBytes === 0 ? [file] : [file, { path: `.pad/${sizeBytes}`, sizeBytes, padding: true as const }];
  });
}

/**
 * Bencodes the file tree of `files`, in the order of the tree. `describe`: the dictionary of a file. Not by way of an object:
 * the library would sort names by their UTF-16 units.
 */
export function encodeFileTree<File extends PlacedFile>(
  files: readonly File[],
  describe: (file: File) => Readonly<Record<string, unknown>>,
): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [ENCODER.encode("d")];
  let open: readonly string[] = [];
  for (const file of files) {
    const names = file.path.split("/");
    const directories = names.slice(0, -1);
    let shared = 0;
    while (shared < Math.min(open.length, directories.length) && open[shared] === directories[shared]) shared++;
    for (let depth = open.length; depth > shared; depth--) parts.push(ENCODER.encode("e"));
    for (const name of directories.slice(shared)) parts.push(encodeBencode(name), ENCODER.encode("d"));
    open = directories;
    parts.push(encodeBencode(names.at(-1)), encodeBencode({ "": describe(file) }));
  }
  for (let depth = open.length; depth >= 0; depth--) parts.push(ENCODER.encode("e"));
  return concatBytes(parts);
}
