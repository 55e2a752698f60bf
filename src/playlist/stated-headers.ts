/** The fields that a list says its stream wants: most providers let in only the players they know. */
import type { ImportedEntry } from "./entry.ts";

/** Attributes of `#EXTINF`, and options of VLC, with the field that each stands for. */
const FIELDS: Readonly<Record<string, string>> = {
  "http-user-agent": "User-Agent",
  "user-agent": "User-Agent",
  "http-referrer": "Referer",
  "http-referer": "Referer",
  referrer: "Referer",
  referer: "Referer",
  "http-origin": "Origin",
  "http-cookie": "Cookie",
};
/** Fields for inputstream.adaptive of Kodi, written as after the `|` of an address. */
const KODI = /^#KODIPROP:inputstream\.adaptive\.(?:stream|manifest|common)_headers=(.+)$/i;
const VLC = /^#EXTVLCOPT:([\w-]{1,40})=(.+)$/i;

/** `url` with what the entry says about it behind its `|`, as players write it; what stands there already comes last, and counts. */
export function addressWithHeaders(url: string, entry: Pick<ImportedEntry, "attributes" | "directives">): string {
  const stated: string[] = [];
  const add = (name: string, value: string) => {
    const field = FIELDS[name.toLowerCase()];
    if (field !== undefined && value !== "") stated.push(`${field}=${encodeURIComponent(value)}`);
  };
  for (const [name, value] of Object.entries(entry.attributes)) add(name, value);
  for (const directive of entry.directives) {
    const [, name, value] = VLC.exec(directive) ?? [];
    if (name !== undefined) add(name, value!.trim());
    const fields = KODI.exec(directive)?.[1];
    if (fields !== undefined) stated.push(fields);
  }
  if (stated.length === 0) return url;
  const bar = url.indexOf("|");
  return bar < 0 ? `${url}|${stated.join("&")}` : `${url.slice(0, bar)}|${stated.join("&")}&${url.slice(bar + 1)}`;
}
