/**
 * The web page, `/` and `/webui/`, the page of the API, `/docs`, and the files that they load. Everything else they do through
 * the public API.
 */
import type { Hono } from "hono";
import { gunzipped } from "../bytes/gunzip.ts";
import { concatBytes } from "../bytes/hex.ts";
import { readBounded } from "../bytes/read-bounded.ts";
import { MillraceError } from "../errors.ts";
import { APP_CSS, APP_JS } from "../webui/assets.generated.ts";
import { TEXTS } from "../webui/texts/assets.generated.ts";
import { DOCS_CSS, DOCS_JS } from "../webui/docs/assets.generated.ts";
import type { HttpContext, HttpEnv } from "./context.ts";

/**
 * What the page may load: files and responses of this engine, pictures from anywhere (logos of channels), the blob:
 * addresses of Media Source Extensions, and the empty data: address of hls.js's subtitle tracks. No inline script or style, no frame around it.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data: http: https:",
  "media-src 'self' blob: data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/**
 * What the worker that draws subtitles may do: compile WebAssembly, which the page may not, and load files of this engine.
 * It has no part of the page.
 */
const WORKER_POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'";

/** Most bytes of a packed file, twice the size of the largest. */
const MAX_PACKED_BYTES = 4 * 1024 * 1024;

/** A file, ready to be sent. */
interface Asset {
  readonly plain: Uint8Array<ArrayBuffer>;
  readonly gzip: Uint8Array<ArrayBuffer>;
  readonly etag: string;
}

/** Adds the routes. */
export function addWebuiRoutes(app: Hono<HttpEnv>): void {
  const assets = new Map<string, Promise<Asset>>();
  /** Makes each asset once: at the first page view, not at the start. */
  const send = async (
    c: HttpContext,
    name: string,
    type: string,
    load: () => Promise<Uint8Array>,
    policy: Readonly<Record<string, string>> = {},
  ) => {
    let made = assets.get(name);
    if (made === undefined) assets.set(name, made = load().then(prepare));
    const asset = await made.catch((error) => {
      assets.delete(name);
      throw error;
    });
    const response = assetResponse(c, asset, type);
    for (const [field, value] of Object.entries(policy)) response.headers.set(field, value);
    return response;
  };
  const text = (value: string) => () => Promise.resolve(new TextEncoder().encode(value));
  for (const path of ["/", "/webui", "/webui/"]) app.get(path, (c) => page(c, "app"));
  for (const path of ["/docs", "/docs/"]) app.get(path, (c) => page(c, "docs"));
  app.get("/webui/app.js", (c) => send(c, "app.js", "text/javascript; charset=utf-8", text(APP_JS)));
  app.get("/webui/app.css", (c) => send(c, "app.css", "text/css; charset=utf-8", text(APP_CSS)));
  app.get("/webui/docs.js", (c) => send(c, "docs.js", "text/javascript; charset=utf-8", text(DOCS_JS)));
  app.get("/webui/docs.css", (c) => send(c, "docs.css", "text/css; charset=utf-8", text(DOCS_CSS)));
  for (const [language, catalogue] of Object.entries(TEXTS)) {
    const name = `texts/${language}.json`;
    app.get(`/webui/${name}`, (c) => send(c, name, "application/json", text(catalogue)));
  }
  app.get("/webui/hls.js", (c) => send(c, "hls.js", "text/javascript; charset=utf-8", hlsModule));
  // Loaded when somebody turns on subtitles that they draw.
  app.get(
    "/webui/ass-worker.js",
    (c) =>
      send(c, "ass-worker.js", "text/javascript; charset=utf-8", assWorker, {
        "content-security-policy": WORKER_POLICY,
      }),
  );
  app.get("/webui/libass.wasm", (c) => send(c, "libass.wasm", "application/wasm", libass));
  app.get("/webui/last-font.woff2", (c) => send(c, "last-font.woff2", "font/woff2", lastFont));
}

/** hls.js. It is loaded when a page first plays: no start waits for it. */
async function hlsModule(): Promise<Uint8Array> {
  const { HLS_JS_GZIP } = await import("../webui/hls-js/assets.generated.ts");
  return await unpacked(HLS_JS_GZIP, "hls.js");
}

/** The worker that draws subtitles, the library that it uses, and the font of last resort. */
async function assWorker(): Promise<Uint8Array> {
  const { ASS_WORKER_GZIP } = await import("../webui/libass/assets.generated.ts");
  return await unpacked(ASS_WORKER_GZIP, "worker of libass");
}
async function libass(): Promise<Uint8Array> {
  const { LIBASS_GZIP } = await import("../webui/libass/assets.generated.ts");
  return await unpacked(LIBASS_GZIP, "libass");
}
async function lastFont(): Promise<Uint8Array> {
  const { LAST_FONT } = await import("../webui/libass/assets.generated.ts");
  return bytesOf(LAST_FONT);
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}

async function unpacked(base64: string, name: string): Promise<Uint8Array> {
  const damaged = (cause: unknown) => new MillraceError("internal", `the packed ${name} is damaged`, { cause });
  return await readBounded(
    gunzipped(new Blob([bytesOf(base64)]).stream(), damaged),
    MAX_PACKED_BYTES,
    () => damaged(null),
  );
}

/** The frame of a page; `name` is that of its script and style. */
function page(c: HttpContext, name: "app" | "docs"): Response {
  // Behind a reverse proxy the engine may stand below a path. The base is an address that the engine made: it has no quotes.
  const own = new URL(c.get("caller").ownUrl);
  const base = own.pathname.replace(/\/$/, "");
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="millrace-base" content="${base}">${
    // The engine gives its token to callers here; others would ask in vain.
    c.get("caller").addressClass === "loopback" ? '\n<meta name="millrace-here" content="">' : ""}
<meta name="referrer" content="no-referrer">
<title>millrace</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${base}/webui/${name}.css">
<script type="module" src="${base}/webui/${name}.js"></script>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript. Players do not: open /engine/getstream?infohash=… in them.</noscript>
</html>
`;
  return c.body(html, 200, {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": POLICY,
    "cache-control": "no-cache",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    ...(isTrustworthy(own) ? { "cross-origin-opener-policy": "same-origin" } : {}),
  });
}

/** Whether browsers hold the origin for secure: elsewhere they ignore some fields, and complain in the console. */
function isTrustworthy({ protocol, hostname }: URL): boolean {
  return protocol === "https:" || /^(localhost|.*\.localhost|127\.[\d.]+|\[::1\])$/.test(hostname);
}

function assetResponse(c: HttpContext, { plain, gzip, etag }: Asset, type: string): Response {
  const headers = {
    "content-type": type,
    "cache-control": "no-cache",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
    vary: "accept-encoding",
    etag,
  };
  if (c.req.header("if-none-match") === etag) return c.body(null, 304, headers);
  const takesGzip = /(^|[ ,])gzip\b/i.test(c.req.header("accept-encoding") ?? "");
  return takesGzip ? c.body(gzip, 200, { ...headers, "content-encoding": "gzip" }) : c.body(plain, 200, headers);
}

async function prepare(bytes: Uint8Array): Promise<Asset> {
  const plain = new Uint8Array(bytes);
  const packed: Uint8Array[] = [];
  for await (const chunk of new Blob([plain]).stream().pipeThrough(new CompressionStream("gzip"))) packed.push(chunk);
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", plain));
  // Both forms have the same tag only because it is weak (RFC 9110 section 8.8.3.2).
  const etag = `W/"${Array.from(hash.subarray(0, 12), (byte) => byte.toString(16).padStart(2, "0")).join("")}"`;
  return { plain, gzip: concatBytes(packed), etag };
}
