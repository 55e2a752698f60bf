/** Transport files on this machine's disk, which launchers name by `file://`. */
import { MillraceError } from "../errors.ts";
import { MAX_TRANSPORT_FILE_BYTES } from "../metainfo/limits.ts";
import type { FilePort } from "../ports.ts";
import type { StreamSelector } from "./selector.ts";

/**
 * `selector`, with the transport file itself in place of its `file://` address; `mayRead` says whether the caller may read
 * files of this machine. Rejects with `denied`, `invalid_argument`, and `not_found` for all that cannot be read: a caller
 * learns nothing about other files.
 */
export async function withLocalFile(
  files: Pick<FilePort, "info" | "readFile">,
  selector: StreamSelector,
  mayRead: boolean,
): Promise<StreamSelector> {
  if (selector.kind !== "url" || !/^file:/i.test(selector.url)) return selector;
  if (!mayRead) throw new MillraceError("denied", "file:// addresses are for programs on the engine's machine");
  for (const path of pathsOf(selector.url)) {
    const bytes = await read(files, path);
    if (bytes !== null) return { kind: "transport_file", bytes };
  }
  throw new MillraceError("not_found", "the engine can read no transport file at this file:// address");
}

/** What the address may mean: some launchers put a path behind `file://` as it is, others encode it (RFC 8089). */
function pathsOf(url: string): Set<string> {
  const [, path] = /^file:(?:\/\/(?:localhost)?)?(\/[^/].*)$/i.exec(url) ?? [];
  if (path === undefined || /\0|%00/.test(path)) {
    throw new MillraceError("invalid_argument", "invalid url: file:///path/name.torrent is expected");
  }
  let decoded = path;
  try {
    decoded = decodeURIComponent(path);
  } catch {
    // A percent sign of the name itself.
  }
  // On Windows the drive follows the slash.
  return new Set([path, decoded].map((text) => text.replace(/^\/(?=[A-Za-z]:\/)/, "")));
}

async function read(files: Pick<FilePort, "info" | "readFile">, path: string): Promise<Uint8Array | null> {
  try {
    const { sizeBytes, isDirectory } = await files.info(path);
    // Pipes and devices have no size, and opening a pipe would wait for a writer.
    if (isDirectory || sizeBytes === 0) return null;
    return await files.readFile(path, { maxBytes: MAX_TRANSPORT_FILE_BYTES });
  } catch (error) {
    if (error instanceof MillraceError) return null;
    throw error;
  }
}
