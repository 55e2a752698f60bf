/** Names of files and folders that every file system and system takes. */
import { plainName } from "../../../bytes/file-name.ts";
import { trimEndOf } from "../../../bytes/trim.ts";

/** Longest name, bytes of UTF-8: file systems take 255, and more is added to it. */
const MAX_NAME_BYTES = 180;
/** Names of devices on Windows, also with an extension. */
const DEVICE = /^(?:con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)(?:\.|$)/i;

/** A title as the name of a file without its extension, or of a folder: never empty, hidden, or one that leads elsewhere. */
export function safeName(title: string): string {
  const plain = plainName(title.toWellFormed().normalize("NFC")).replace(/[<>:"|?*\u0080-\u009f]/g, "_");
  const name = trimEndOf(cut(plain.replace(/\s+/g, " ").trim()), ". ").replace(/^\.+/, "_");
  return name === "" || DEVICE.test(name) ? `_${name}` : name;
}

/** The longest beginning of `name` that has at most `MAX_NAME_BYTES`. */
function cut(name: string): string {
  const bytes = new TextEncoder().encode(name);
  if (bytes.length <= MAX_NAME_BYTES) return name;
  // A character that was cut in two is left out.
  return trimEndOf(new TextDecoder().decode(bytes.subarray(0, MAX_NAME_BYTES)), "\uFFFD");
}

/** Equal for names that some file system takes for the same. */
export function foldedName(name: string): string {
  return name.normalize("NFC").toLowerCase();
}
