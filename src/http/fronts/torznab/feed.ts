/** Torznab's XML: what the indexer can do, a page of torrents, errors. Names of elements are the interface's. */
import { escapeXml } from "../../../bytes/xml.ts";
import { magnetLink } from "../../../metainfo/live.ts";
import { parseMagnet } from "../../../metainfo/magnet.ts";
import type { AnyMetainfo } from "../../../metainfo/live.ts";
import type { Magnet } from "../../../metainfo/types.ts";
import { type LibraryTorrent, TORRENT_CATEGORIES } from "../../../playlist/torrents.ts";

/** Most torrents of one page, and how many there are where a client does not say. */
export const PAGE_TORRENTS = 100;

const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n';
const TYPE = "application/x-bittorrent";

/** The errors of the interface by which clients decide what to do. */
export const ERRORS = {
  wrongKey: [100, "Incorrect user credentials"],
  missing: [200, "Missing parameter"],
  incorrect: [201, "Incorrect parameter"],
  noFunction: [202, "No such function"],
  limit: [500, "Request limit reached"],
} as const;

/** An error as clients read it: out of an answer that succeeded. */
export function errorXml(error: keyof typeof ERRORS, detail = ""): string {
  const [code, description] = ERRORS[error];
  return `${DECLARATION}<error code="${code}" description="${
    escapeXml(detail === "" ? description : `${description} (${detail})`)
  }"/>\n`;
}

/** The answer to `t=caps`. */
export function capabilitiesXml(version: string): string {
  const categories = TORRENT_CATEGORIES.filter(({ number }) => number % 1000 === 0).map(({ number, name }) => {
    const below = TORRENT_CATEGORIES.filter((one) => one.number > number && one.number < number + 1000);
    const inner = below.map((one) => `<subcat id="${one.number}" name="${escapeXml(one.name)}"/>`).join("");
    return `<category id="${number}" name="${escapeXml(name)}">${inner}</category>`;
  });
  const none = ["music-search", "audio-search", "book-search"].map((name) => {
    return `<${name} available="no" supportedParams="q"/>`;
  });
  return `${DECLARATION}<caps>
<server title="millrace" version="${escapeXml(version)}"/>
<limits default="${PAGE_TORRENTS}" max="${PAGE_TORRENTS}"/>
<searching><search available="yes" supportedParams="q"/><tv-search available="yes" supportedParams="q,season,ep"/>` +
    `<movie-search available="yes" supportedParams="q"/>${none.join("")}</searching>
<categories>${categories.join("")}</categories>
</caps>
`;
}

/** What stands before the torrents of a page. */
export function feedStart(base: string, offset: number, total: number): string {
  const url = escapeXml(`${base}/api`);
  return `${DECLARATION}<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" ` +
    `xmlns:newznab="http://www.newznab.com/DTD/2010/feeds/attributes/" ` +
    `xmlns:torznab="http://torznab.com/schemas/2015/feed">
<channel>
<atom:link href="${url}" rel="self" type="application/rss+xml"/>
<title>millrace</title><description>The library of this engine</description><link>${url}</link>
<newznab:response offset="${offset}" total="${total}"/>
`;
}

/** What stands after them. */
export const FEED_END = "</channel>\n</rss>\n";

/** A torrent; `metainfo` is its description if it is known. Empty for what turned out to be a broadcast. */
export function torrentXml(torrent: LibraryTorrent, metainfo: AnyMetainfo | null): string {
  const { id, title, infohashHex, addedS, peers, categories } = torrent;
  if (metainfo !== null && !("files" in metainfo)) return "";
  const magnet = escapeXml(magnetOf(torrent, metainfo));
  const sizeBytes = metainfo?.totalBytes ?? null;
  const attributes: [name: string, value: string | number][] = [
    ...categories.map((category): [string, number] => ["category", category]),
    ["infohash", infohashHex],
    ...(sizeBytes === null ? [] : [["size", sizeBytes], ["files", metainfo!.files.length]] as [string, number][]),
    // All that shared it when it was checked: it is not known which of them had all of it.
    ...(peers === null ? [] : [["seeders", peers], ["peers", peers]] as [string, number][]),
    ["downloadvolumefactor", 0],
    ["uploadvolumefactor", 1],
  ];
  return `<item><title>${escapeXml(title || infohashHex)}</title><guid isPermaLink="false">millrace-${id}</guid>` +
    `<link>${magnet}</link><pubDate>${new Date(addedS * 1000).toUTCString().replace("GMT", "+0000")}</pubDate>` +
    `${sizeBytes === null ? "" : `<size>${sizeBytes}</size>`}` +
    categories.map((category) => `<category>${category}</category>`).join("") +
    `<enclosure url="${magnet}" length="${sizeBytes ?? 0}" type="${TYPE}"/>` +
    `<torznab:attr name="magneturl" value="${magnet}"/>` +
    attributes.map(([name, value]) => `<torznab:attr name="${name}" value="${value}"/>`).join("") + "</item>\n";
}

/** Its magnet link, with the trackers that are known. Links of lists may hold characters that addresses must not. */
function magnetOf({ url, infohashHex, title }: LibraryTorrent, metainfo: AnyMetainfo | null): string {
  if (metainfo !== null) return magnetLink(metainfo);
  const given = linked(url);
  const trackers = given === null ? [] : [given.trackers];
  return magnetLink({ infohashHex, name: (given?.name ?? title).toWellFormed(), trackers });
}

function linked(url: string | null): Magnet | null {
  if (url === null || !/^magnet:/i.test(url)) return null;
  try {
    return parseMagnet(url);
  } catch {
    return null;
  }
}
