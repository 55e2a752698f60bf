/** File names that every file system accepts and that never collide. */
import { trimEndOf } from "../bytes/trim.ts";

const ENCODER = new TextEncoder();
/** Longest component, bytes: Linux allows 255; the rest is for the part that makes it unique. */
const MAX_BYTES = 200;
/** Names that Windows reserves, whatever their extension. */
const RESERVED = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;

/** One component with characters that some file system refuses replaced by `_`, cut to 200 bytes; its extension stays. */
export function diskComponent(name: string): string {
  // deno-lint-ignore no-control-regex
  const plain = name.normalize("NFC").replace(/[\u0000-\u001f\u007f<>:"/\\|?*]/g, "_");
  const trimmed = trimEndOf(plain, ". ");
  let text = trimmed === plain ? plain : `${trimmed}_`;
  // A lone surrogate can't be written as UTF-8.
  text = text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "_");
  if (RESERVED.test(text)) text = `_${text}`;
  if (text === "" || /^\.+$/.test(text)) text = "_";
  if (ENCODER.encode(text).length <= MAX_BYTES) return text;
  const dot = text.lastIndexOf(".");
  const extension = dot > 0 && text.length - dot <= 12 ? text.slice(dot) : "";
  const room = MAX_BYTES - ENCODER.encode(extension).length;
  const stem = [...text.slice(0, text.length - extension.length)];
  let bytes = 0;
  let cut = 0;
  for (; cut < stem.length; cut++) {
    bytes += ENCODER.encode(stem[cut]!).length;
    if (bytes > room) break;
  }
  return stem.slice(0, cut).join("") + extension;
}

/**
 * Relative paths for storing `paths` (`/`-separated), in order. If two would collide on a file system that ignores
 * case, or after unsafe characters were replaced, the later one gets its index added to its name: the same torrent
 * always gets the same paths.
 */
export function diskPaths(paths: readonly string[]): string[] {
  /** Paths in use, as a file system that ignores case sees them. */
  const taken = new Set<string>();
  /** The stored path of each of the torrent's directories. */
  const directories = new Map<string, string>();
  return paths.map((path, index) => {
    const components = path.split("/");
    let stored = "";
    components.forEach((component, depth) => {
      const directory = depth < components.length - 1 ? components.slice(0, depth + 1).join("/") : null;
      const known = directory === null ? undefined : directories.get(directory);
      if (known !== undefined) {
        stored = known;
        return;
      }
      const prefix = stored === "" ? "" : `${stored}/`;
      stored = prefix + diskComponent(component);
      for (let n = 0; taken.has(stored.toLowerCase()); n++) {
        stored = prefix + withMark(diskComponent(component), n === 0 ? `${index}` : `${index}-${n}`);
      }
      taken.add(stored.toLowerCase());
      if (directory !== null) directories.set(directory, stored);
    });
    return stored;
  });
}

function withMark(name: string, mark: string): string {
  const dot = name.lastIndexOf(".");
  return dot > 0 ? `${name.slice(0, dot)} (${mark})${name.slice(dot)}` : `${name} (${mark})`;
}
