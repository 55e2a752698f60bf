/** Writes entries of the library as DIDL-Lite (ContentDirectory:1, section 2.8). */
import { escapeXml } from "../../bytes/xml.ts";
import { protocolInfo } from "../../upnp/dlna.ts";
import { FILE_CLASS, LIVE_CLASS } from "./search-criteria.ts";

/** Media type of MPEG TS in 188-byte packets: that of the DLNA profiles whose names end in `_ISO`. */
export const MEDIA_TYPE = "video/mpeg";

/** A list that can be opened. */
export interface ContainerEntry {
  readonly kind: "container";
  readonly id: string;
  readonly parentId: string;
  readonly title: string;
  /** Null when unknown. */
  readonly childCount: number | null;
}

/** Something that can be played. */
export interface MediaEntry {
  readonly kind: "media";
  readonly id: string;
  readonly parentId: string;
  readonly title: string;
  readonly isLive: boolean;
  readonly url: string;
  /** Address of a picture; empty when there is none. */
  readonly picture: string;
  /** Null when it is unknown before playback. */
  readonly sizeBytes: number | null;
  readonly durationMs: number | null;
}

/** One entry of a list. */
export type DidlEntry = ContainerEntry | MediaEntry;

/** Writes the whole document. */
export function didl(entries: readonly DidlEntry[]): string {
  return '<DIDL-Lite xmlns="urn:schemas-upnp-org:metadata-1-0/DIDL-Lite/" xmlns:dc="http://purl.org/dc/elements/1.1/" ' +
    'xmlns:upnp="urn:schemas-upnp-org:metadata-1-0/upnp/" xmlns:dlna="urn:schemas-dlna-org:metadata-1-0/">' +
    `${entries.map(elementOf).join("")}</DIDL-Lite>`;
}

function elementOf(entry: DidlEntry): string {
  const title = `<dc:title>${escapeXml(entry.title || "?")}</dc:title>`;
  const place = `id="${escapeXml(entry.id)}" parentID="${escapeXml(entry.parentId)}" restricted="1"`;
  if (entry.kind === "container") {
    const count = entry.childCount === null ? "" : ` childCount="${entry.childCount}"`;
    return `<container ${place} searchable="1"${count}>${title}<upnp:class>object.container</upnp:class></container>`;
  }
  const picture = /^https?:\/\//i.test(entry.picture)
    ? `<upnp:albumArtURI>${escapeXml(entry.picture)}</upnp:albumArtURI>`
    : "";
  const facts = [
    `protocolInfo="${protocolInfo(MEDIA_TYPE, !entry.isLive)}"`,
    ...entry.sizeBytes === null ? [] : [`size="${entry.sizeBytes}"`],
    ...entry.durationMs === null ? [] : [`duration="${durationOf(entry.durationMs)}"`],
  ];
  return `<item ${place}>${title}<upnp:class>${entry.isLive ? LIVE_CLASS : FILE_CLASS}</upnp:class>${picture}` +
    `<res ${facts.join(" ")}>${escapeXml(entry.url)}</res></item>`;
}

/** `H+:MM:SS.FFF`. */
function durationOf(ms: number): string {
  const whole = Math.round(ms);
  const part = (unitMs: number, of: number, digits: number) =>
    String(Math.floor(whole / unitMs) % of).padStart(digits, "0");
  return `${Math.floor(whole / 3_600_000)}:${part(60_000, 60, 2)}:${part(1000, 60, 2)}.${part(1, 1000, 3)}`;
}
