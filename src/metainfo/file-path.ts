/** Names and paths from a transport file: hostile ones are refused, awkward ones made harmless. */
import { plainName } from "../bytes/file-name.ts";
import { MillraceError } from "../errors.ts";
import { MAX_COMPONENT_BYTES, MAX_PATH_BYTES, MAX_PATH_COMPONENTS } from "./limits.ts";

const ENCODER = new TextEncoder();
const STRICT_UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

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
 * One safe path component. A name like "AC/DC" is a title and becomes "AC_DC"; control characters are replaced too. A
 * name that would lead elsewhere (`..`, an absolute path, a drive, NUL) shows intent and throws `bad_transport_file`.
 */
export function safeComponent(text: string): string {
  const refuse = (reason: string): never => {
    throw new MillraceError("bad_transport_file", `a file name in the transport file ${reason}`);
  };
  if (text === "") refuse("is empty");
  if (text.includes("\0")) refuse("contains a NUL");
  if (/^[/\\]/.test(text)) refuse("is an absolute path");
  if (/^[A-Za-z]:($|[/\\])/.test(text)) refuse("begins with a drive letter");
  if (text.split(/[/\\]/).some((part) => part === "." || part === "..")) refuse("leads out of its directory");
  if (ENCODER.encode(text).length > MAX_COMPONENT_BYTES) refuse(`is longer than ${MAX_COMPONENT_BYTES} bytes`);
  return plainName(text);
}

/** A safe relative path of components, joined with `/`. Throws `bad_transport_file`. */
export function safePath(components: readonly string[]): string {
  if (components.length === 0) {
    throw new MillraceError("bad_transport_file", "a file in the transport file has no path");
  }
  if (components.length > MAX_PATH_COMPONENTS) {
    throw new MillraceError("bad_transport_file", `a path is deeper than ${MAX_PATH_COMPONENTS} directories`);
  }
  const path = components.map(safeComponent).join("/");
  if (ENCODER.encode(path).length > MAX_PATH_BYTES) {
    throw new MillraceError("bad_transport_file", `a path is longer than ${MAX_PATH_BYTES} bytes`);
  }
  return path;
}

/**
 * Refuses file lists in which two files have one path (`a`, `a`) or a file is also a directory (`a`, `a/b`). Names that
 * differ only in case are fine here; storage keeps them apart.
 */
export function refusePathClashes(paths: readonly string[]): void {
  const files = new Set<string>();
  for (const path of paths) {
    if (files.has(path)) throw new MillraceError("bad_transport_file", `two files are named "${path}"`);
    files.add(path);
  }
  for (const path of paths) {
    for (let slash = path.indexOf("/"); slash >= 0; slash = path.indexOf("/", slash + 1)) {
      const directory = path.slice(0, slash);
      if (files.has(directory)) {
        throw new MillraceError("bad_transport_file", `"${directory}" is both a file and a directory`);
      }
    }
  }
}
