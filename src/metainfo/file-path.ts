/** Names and paths from a transport file. Names on disk and in URLs are ours, so no name is refused: all are made harmless. */
import { plainName } from "../bytes/file-name.ts";
import { percentEncoded } from "../bytes/percent.ts";
import { MAX_COMPONENT_BYTES, MAX_PATH_BYTES, MAX_PATH_COMPONENTS } from "./limits.ts";

const ENCODER = new TextEncoder();
const STRICT_UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The name of a file or directory whose own name has nothing that can be shown. */
const UNNAMED = "unnamed";

/** Longest extension that is kept when a name is cut, characters: `.torrent` and a few more. */
const MAX_EXTENSION_CHARS = 12;

/** A path fit for lists and disks, and the path that the torrent's creator meant. */
export interface FilePath {
  /** `/`-separated; no component is empty, `.` or `..`; at most 64 components and 4096 bytes of UTF-8. */
  readonly path: string;
  /** The torrent's own bytes, percent-encoded component by component, as web seeds know it; null when `path` says the same. */
  readonly webPath: string | null;
}

/**
 * Text of a name. Old creators wrote names in their machine's code page: names that aren't UTF-8 are read as Latin-1,
 * byte by byte, which keeps different names different.
 */
export function decodeName(bytes: Uint8Array): string {
  try {
    return STRICT_UTF8.decode(bytes);
  } catch {
    let text = "";
    for (const byte of bytes) text += String.fromCharCode(byte);
    return text;
  }
}

/**
 * One path component that leads nowhere. "AC/DC" is a title and becomes "AC_DC"; a leading slash, a drive's colon, and
 * `.` and `..` between separators are dropped; control characters are replaced; more than 765 bytes are cut. Returns ""
 * when nothing remains.
 */
export function harmlessComponent(text: string): string {
  const led = /^[/\\]|^[A-Za-z]:(?:$|[/\\])|(?:^|[/\\])\.{1,2}(?:$|[/\\])/.test(text);
  return cut(plainName(led ? withoutLead(text) : text), MAX_COMPONENT_BYTES);
}

/** `harmlessComponent`, with a name for what has none. */
export function safeName(text: string): string {
  return harmlessComponent(text) || UNNAMED;
}

/** The path of a file from its components, root first. A path that is too deep or too long loses its first directories. */
export function filePath(components: readonly Uint8Array[]): FilePath {
  const names: string[] = [];
  const meant: Uint8Array[] = [];
  let isMeant = true;
  for (const bytes of components) {
    const text = decodeName(bytes);
    const name = harmlessComponent(text);
    if (name !== "") names.push(name);
    if (text !== "" && text !== "." && text !== "..") meant.push(bytes);
    isMeant &&= name === text && isUtf8(bytes, text);
  }
  if (names.length === 0) names.push(UNNAMED);
  let path = names.slice(-MAX_PATH_COMPONENTS).join("/");
  while (path.length > MAX_PATH_BYTES / 3 && ENCODER.encode(path).length > MAX_PATH_BYTES) {
    path = path.slice(path.indexOf("/") + 1);
  }
  return { path, webPath: isMeant || meant.length === 0 ? null : meant.map(percentEncoded).join("/") };
}

/**
 * Gives each path a name of its own, in order: of two equal paths, and of a file that is also a directory (`a`, `a/b`),
 * the later file and the file gets a number, "a (2).mkv". Names that differ only in case are fine here; storage keeps
 * them apart.
 */
export function distinctPaths(paths: readonly string[]): string[] {
  const directories = new Set<string>();
  for (const path of paths) {
    // From the end, so that a directory that many files share is looked at once per file.
    for (let slash = path.lastIndexOf("/"); slash > 0; slash = path.lastIndexOf("/", slash - 1)) {
      const directory = path.slice(0, slash);
      if (directories.has(directory)) break;
      directories.add(directory);
    }
  }
  const own = new Set(paths);
  const taken = new Set<string>();
  /** The next number to try of each path that has doubles: thousands of equal names cost one try each. */
  const next = new Map<string, number>();
  return paths.map((path) => {
    let name = path;
    if (taken.has(path) || directories.has(path)) {
      let number = next.get(path) ?? 2;
      do name = numbered(path, number++); while (taken.has(name) || directories.has(name) || own.has(name));
      next.set(path, number);
    }
    taken.add(name);
    return name;
  });
}

function withoutLead(text: string): string {
  const parts = text.split(/[/\\]/).filter((part) => part !== "." && part !== "..");
  return parts.join("/").replace(/^\/+/, "").replace(/^([A-Za-z]):(?=\/|$)/, "$1");
}

/** `text` of at most `bytes` bytes of UTF-8; its extension stays. */
function cut(text: string, bytes: number): string {
  if (text.length <= bytes / 3 || ENCODER.encode(text).length <= bytes) return text;
  const extension = extensionOf(text);
  const room = new Uint8Array(bytes - ENCODER.encode(extension).length);
  return text.slice(0, ENCODER.encodeInto(text, room).read) + extension;
}

function numbered(path: string, number: number): string {
  const extension = extensionOf(path.slice(path.lastIndexOf("/") + 1));
  return `${path.slice(0, path.length - extension.length)} (${number})${extension}`;
}

function extensionOf(name: string): string {
  const dot = name.lastIndexOf(".");
  return dot > 0 && name.length - dot <= MAX_EXTENSION_CHARS ? name.slice(dot) : "";
}

/** Whether `text`, decoded by `decodeName`, was UTF-8: Latin-1 text with other than ASCII characters is longer as UTF-8. */
function isUtf8(bytes: Uint8Array, text: string): boolean {
  // deno-lint-ignore no-control-regex
  return text.length !== bytes.length || /^[\u0000-\u007f]*$/.test(text);
}
