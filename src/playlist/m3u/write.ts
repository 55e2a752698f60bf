/** Writes extended M3U lists that `readM3u` and players read back unchanged. */
import { oneLine, writeAttributes, writeExtInf } from "./extinf.ts";
import type { M3uEntry, M3uHeader } from "./m3u-entry.ts";

/** Characters gathered before a part is yielded. */
const PART_CHARS = 64 * 1024;

/** Yields the list as text in parts with LF line ends. Line ends inside values become spaces, so that no value can add lines. */
export async function* writeM3u(
  header: M3uHeader,
  entries: Iterable<M3uEntry> | AsyncIterable<M3uEntry>,
): AsyncGenerator<string> {
  let part = `#EXTM3U${writeAttributes(header.attributes)}\n`;
  let group = "";
  for await (const entry of entries) {
    // An empty group ends the one before, which players take to hold until then.
    part += writeM3uEntry(entry, entry.group !== "" || group !== "");
    group = entry.group;
    if (part.length < PART_CHARS) continue;
    yield part;
    part = "";
  }
  if (part !== "") yield part;
}

/** The lines of one entry, each with its line end. */
function writeM3uEntry(entry: M3uEntry, hasGroup: boolean): string {
  let text = writeExtInf(entry) + "\n";
  if (hasGroup) text += `#EXTGRP:${oneLine(entry.group)}\n`;
  for (const directive of entry.directives) {
    if (directive.startsWith("#")) text += oneLine(directive) + "\n";
  }
  return text + oneLine(entry.url) + "\n";
}
