/** The library over WebDAV, read-only (`--front webdav`): file managers and media centres open it as a folder. */
import { MillraceError } from "../../../errors.ts";
import { mimeTypeOf } from "../../../content/file-choice.ts";
import { trimEndOf } from "../../../bytes/trim.ts";
import { escapeXml } from "../../../bytes/xml.ts";
import { readInTurn } from "../../../upnp/xml.ts";
import type { HttpContext, HttpParts } from "../../context.ts";
import { text } from "../../guard.ts";
import { readBody } from "../../request-body.ts";
import { fileResponse } from "../../stream-routes.ts";
import type { Front } from "../front.ts";
import { addRoute, fileRequest } from "../requests.ts";
import { streamed } from "../streamed.ts";
import { askedProperties, MODIFIED, responseOf, tagOf } from "./multistatus.ts";
import { LibraryTree, type Node } from "./tree.ts";

/** Largest body of a request, bytes: real ones have a kilobyte. */
const MAX_BODY_BYTES = 64 * 1024;
/** Longest path, characters. */
const MAX_PATH_CHARS = 8192;
const METHODS = "OPTIONS, GET, HEAD, PROPFIND";
const DAV = { dav: "1", "ms-author-via": "DAV" };

/** See the page on fronts. */
export const WEBDAV: Front = {
  name: "webdav",
  access: "account",
  // Finder asks without a password first, and gives up where the refusal does not say that this is WebDAV.
  headers: DAV,
  pages: { fields: "authorization, depth", methods: "OPTIONS, PROPFIND" },
  open: ({ parts }) => (app, prefix) => {
    const tree = new LibraryTree(parts);
    for (const path of [prefix === "" ? "/" : prefix, `${prefix}/*`]) {
      addRoute(app, parts, "PROPFIND", path, (c) => properties(c, parts, tree, prefix));
      addRoute(app, parts, "GET", path, (c) => content(c, parts, tree, prefix));
      app.options(path, () => new Response(null, { headers: { ...DAV, allow: METHODS, "content-length": "0" } }));
      app.all(path, () => text("the library is read-only", 405, { ...DAV, allow: METHODS }));
    }
  },
};

/** What the path of a request names, and the path as it is written in addresses. */
async function wanted(c: HttpContext, tree: LibraryTree, prefix: string): Promise<{ node: Node; href: string }> {
  const { pathname } = new URL(c.req.url);
  const below = pathname.slice(prefix.length);
  const node = below.length > MAX_PATH_CHARS ? null : await tree.at(namesOf(below), c);
  if (node === null) throw new MillraceError("not_found", "the library has nothing at this path");
  const bare = trimEndOf(pathname, "/");
  return { node, href: node.kind === "file" ? bare : `${bare}/` };
}

/** Names on a path. One that cannot be a name leads nowhere. */
function namesOf(path: string): string[] {
  const names = path.split("/").filter((name) => name !== "");
  try {
    const decoded = names.map(decodeURIComponent);
    return decoded.some((name) => /[/\0]/.test(name)) ? ["."] : decoded;
  } catch {
    return ["."];
  }
}

async function properties(c: HttpContext, parts: HttpParts, tree: LibraryTree, prefix: string): Promise<Response> {
  const depth = c.req.header("depth")?.trim().toLowerCase() ?? "1";
  if (depth !== "0" && depth !== "1") {
    const error =
      '<?xml version="1.0" encoding="utf-8"?>\n<D:error xmlns:D="DAV:"><D:propfind-finite-depth/></D:error>';
    return new Response(error, { status: 403, headers: { ...DAV, "content-type": "application/xml; charset=utf-8" } });
  }
  const asked = await askedBy(c, parts);
  const { node, href } = await wanted(c, tree, prefix);
  const document = async function* () {
    yield '<?xml version="1.0" encoding="utf-8"?>\n<D:multistatus xmlns:D="DAV:">\n';
    yield await responseOf(node, href, asked);
    if (depth === "1") {
      for await (const part of tree.children(node)) {
        const written = part.map((child) => responseOf(child, hrefOf(href, child), asked));
        yield (await Promise.all(written)).join("");
      }
    }
    yield "</D:multistatus>\n";
  };
  const headers = { ...DAV, "content-type": "application/xml; charset=utf-8", "cache-control": "no-cache" };
  return new Response(streamed(document()), { status: 207, headers });
}

async function askedBy(c: HttpContext, parts: HttpParts): Promise<ReadonlySet<string> | null> {
  const hold = parts.admission.body(c.get("caller").holder);
  try {
    const tooLarge = () => new MillraceError("too_large", `a request has at most ${MAX_BODY_BYTES} bytes`);
    const bytes = await readBody(c.req.raw, parts.clock, MAX_BODY_BYTES, hold, tooLarge);
    if (bytes.length === 0) return null;
    return await readInTurn(() => askedProperties(new TextDecoder().decode(bytes)), c.req.raw.signal);
  } finally {
    hold.release();
  }
}

/** The bytes of a file, or a folder as a list of links, for programs that know no WebDAV. */
async function content(c: HttpContext, parts: HttpParts, tree: LibraryTree, prefix: string): Promise<Response> {
  const { node, href } = await wanted(c, tree, prefix);
  const isHead = c.req.raw.method === "HEAD";
  if (node.kind !== "file") {
    const list = async function* () {
      const title = escapeXml(node.kind === "root" ? "millrace" : node.name);
      yield `<!doctype html><meta charset="utf-8"><title>${title}</title><h1>${title}</h1>\n<ul>\n`;
      for await (const part of tree.children(node)) {
        yield part.map((child) => {
          const end = child.kind === "file" ? "" : "/";
          const name = child.kind === "root" ? "" : child.name;
          return `<li><a href="${escapeXml(hrefOf(href, child))}">${escapeXml(name)}${end}</a></li>\n`;
        }).join("");
      }
      yield "</ul>\n";
    };
    const headers = { ...DAV, "content-type": "text/html; charset=utf-8", "cache-control": "no-cache" };
    return new Response(isHead ? null : streamed(list()), { headers });
  }
  const { file, torrent } = node;
  if (isHead) {
    // Programs that look through a library ask for the heads of all files: no swarm is started for them.
    const headers = {
      ...{ ...DAV, "content-type": mimeTypeOf(file.name), "content-length": String(file.sizeBytes) },
      ...{ "accept-ranges": "bytes", etag: await tagOf(node), "last-modified": MODIFIED },
    };
    return new Response(null, { headers });
  }
  const request = fileRequest(c, parts, torrent.selector, file.index, torrent.mayNamePrivate);
  const response = await fileResponse(c, await parts.sessions.start(request));
  response.headers.set("last-modified", MODIFIED);
  return response;
}

/** Address of a child of the folder at `href`. */
function hrefOf(href: string, child: Node): string {
  const name = child.kind === "root" ? "" : encodeURIComponent(child.name.toWellFormed());
  return `${href}${name}${child.kind === "file" ? "" : "/"}`;
}
