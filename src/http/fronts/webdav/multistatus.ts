/** The body of PROPFIND (RFC 4918): what is asked, and the properties of files and folders. */
import { eTag } from "@std/http";
import { mimeTypeOf } from "../../../content/file-choice.ts";
import { hasCode, MillraceError } from "../../../errors.ts";
import { escapeXml } from "../../../bytes/xml.ts";
import { childrenOf, localName, readXml } from "../../../upnp/xml.ts";
import type { Node } from "./tree.ts";

/** Most tags, references and quotes of a request: clients name some twenty properties. */
const MAX_MARKS = 1024;
/** Of everything: a torrent's bytes never change, and nothing says how old they are. */
export const MODIFIED = "Mon, 01 Jan 2001 00:00:00 GMT";
const CREATED = "2001-01-01T00:00:00Z";

/** Names of the properties that are asked for; null: all. Throws `invalid_argument` for anything but such a request. */
export function askedProperties(body: string): ReadonlySet<string> | null {
  if (body.trim() === "") return null;
  try {
    const root = readXml(body, MAX_MARKS);
    if (localName(root) !== "propfind") throw new MillraceError("invalid_argument", "a propfind is expected");
    const prop = childrenOf(root).find((child) => localName(child) === "prop");
    return prop === undefined ? null : new Set(childrenOf(prop).map(localName));
  } catch (error) {
    if (!hasCode(error, "protocol_violation")) throw error;
    throw new MillraceError("invalid_argument", "the body is not the XML of a propfind");
  }
}

/** The validator of a file: the same as that of its bytes. */
export async function tagOf(node: Extract<Node, { kind: "file" }>): Promise<string> {
  return await eTag(`${node.torrent.infohashHex}/${node.file.index}`) ?? "";
}

/** One `response`. `href` is encoded, and a folder's ends in a slash. */
export async function responseOf(node: Node, href: string, asked: ReadonlySet<string> | null): Promise<string> {
  const isFile = node.kind === "file";
  const properties: Record<string, string> = {
    resourcetype: isFile ? "" : "<D:collection/>",
    displayname: node.kind === "root" ? "millrace" : escapeXml(node.name),
    getlastmodified: MODIFIED,
    creationdate: CREATED,
    ...(isFile
      ? {
        getcontentlength: String(node.file.sizeBytes),
        getcontenttype: escapeXml(mimeTypeOf(node.file.name)),
        // Half of the work of a listing, which many clients do not ask for.
        getetag: asked === null || asked.has("getetag") ? escapeXml(await tagOf(node)) : "",
      }
      : {}),
    supportedlock: "",
    lockdiscovery: "",
  };
  const named = Object.entries(properties).filter(([name]) => asked === null || asked.has(name));
  const missing = [...asked ?? []].filter((name) => !Object.hasOwn(properties, name));
  const found = named.map(([name, value]) => value === "" ? `<D:${name}/>` : `<D:${name}>${value}</D:${name}>`);
  return `<D:response><D:href>${escapeXml(href)}</D:href>${status(found, "200 OK")}` +
    `${missing.length === 0 ? "" : status(missing.map((name) => `<D:${name}/>`), "404 Not Found")}</D:response>\n`;
}

function status(properties: readonly string[], text: string): string {
  return `<D:propstat><D:prop>${properties.join("")}</D:prop><D:status>HTTP/1.1 ${text}</D:status></D:propstat>`;
}
