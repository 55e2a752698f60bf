/** A web server for external playlists that answers as the test says, and an engine's lists over it. */
import { afterEach, beforeEach } from "node:test";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { assertMatch, assertRejects } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { loadSecretBox } from "../../src/account/secret-box.ts";
import { basicAuthorization } from "../../src/bytes/basic-authorization.ts";
import { guardedOpen } from "../../src/content/fetch-guard.ts";
import { createStore, type Store } from "../../src/database/store.ts";
import { MillraceError } from "../../src/errors.ts";
import type { NewExternalPlaylist, OpenUrl } from "../../src/playlist/external/external-playlist.ts";
import { Guide } from "../../src/playlist/guide/guide.ts";
import { Playlist } from "../../src/playlist/items.ts";
import { Lists } from "../../src/playlist/lists.ts";
import type { Clock } from "../../src/ports.ts";
import { textOf } from "../support/text.ts";

/** How the server answers the next request. */
export interface Behaviour {
  /** The list. */
  text: string;
  etag: string | null;
  lastModified: string | null;
  gzip: boolean;
  /** `user:password` that is asked for. */
  credentials: string | null;
  /** Status instead of the list. */
  status: number | null;
  /** Writes a custom response. */
  raw: ((request: IncomingMessage, response: ServerResponse) => void) | null;
}

/** An empty list without validators or compression. */
const PLAIN: Behaviour = {
  text: "#EXTM3U\n",
  etag: null,
  lastModified: null,
  gzip: false,
  credentials: null,
  status: null,
  raw: null,
};

/** A running server. */
export interface ListServer {
  readonly url: string;
  readonly behaviour: Behaviour;
  /** Method and headers of each request so far. */
  readonly requests: { readonly path: string; readonly headers: IncomingMessage["headers"] }[];
  close(): Promise<void>;
}

/** Starts one on a free port. */
export async function startListServer(): Promise<ListServer> {
  const behaviour: Behaviour = { ...PLAIN };
  const requests: ListServer["requests"] = [];
  const server: Server = createServer((request, response) => {
    requests.push({ path: request.url ?? "", headers: request.headers });
    answer(behaviour, request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    behaviour,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function answer(behaviour: Behaviour, request: IncomingMessage, response: ServerResponse): void {
  const { text, etag, lastModified, gzip, credentials, status, raw } = behaviour;
  if (raw !== null) return raw(request, response);
  if (request.url === "/moved") return void response.writeHead(302, { location: "/list.m3u" }).end();
  const expected = credentials === null ? null : `Basic ${Buffer.from(credentials).toString("base64")}`;
  if (expected !== null && request.headers.authorization !== expected) {
    return void response.writeHead(401, { "www-authenticate": "Basic" }).end("no");
  }
  if (status !== null) return void response.writeHead(status).end("trouble");
  const isKnown = (etag !== null && request.headers["if-none-match"] === etag) ||
    (lastModified !== null && request.headers["if-modified-since"] === lastModified);
  if (isKnown) return void response.writeHead(304).end();
  const headers: Record<string, string> = { "content-type": "audio/x-mpegurl" };
  if (etag !== null) headers["etag"] = etag;
  if (lastModified !== null) headers["last-modified"] = lastModified;
  if (gzip) headers["content-encoding"] = "gzip";
  response.writeHead(200, headers).end(gzip ? gzipSync(text) : text);
}

/** An engine's lists and their parts. */
export interface TestLists {
  readonly lists: Lists;
  readonly guide: Guide;
  readonly store: Store;
  readonly playlist: Playlist;
  /** Logged events. */
  readonly logged: string[];
  /** Bytes that `Ports.spent` was told of, call by call. */
  readonly spent: number[];
  /** Items as the API lists them, by title. */
  items(): Promise<Map<string, TestItem>>;
}

/** Fields of section 2.8 that the tests look at. */
export interface TestItem {
  readonly id: number;
  readonly title: string;
  readonly url: string | null;
  readonly category: string | null;
  readonly subcategory: string;
  readonly tags: readonly string[];
  readonly tvg_id: string;
  readonly tvg_logo: string;
  readonly is_live: number;
  readonly hash: string;
  readonly hash_v2: string;
  readonly is_favorite: boolean;
  readonly enabled: boolean;
  readonly locked: boolean;
  readonly external_playlist_id: number;
}

/**
 * Runs `body` with lists whose schedule runs on `clock`; the network runs on real time. `followsGuides`: guides that lists
 * name are fetched.
 */
export async function withLists(
  clock: Clock,
  body: (lists: TestLists) => Promise<void>,
  options: { stateDir?: string; beforeOpen?: () => void; followsGuides?: boolean } = {},
): Promise<void> {
  const ports = await loadPorts();
  const logged: string[] = [];
  const log = {
    log: (level: string, message: string, fields?: unknown) =>
      void logged.push(`${level} ${message} ${JSON.stringify(fields)}`),
    child: () => log,
  };
  const stateDir = options.stateDir ?? null;
  const store = createStore(ports, stateDir === null ? { kind: "memory" } : { kind: "file", path: `${stateDir}/t.db` });
  const open: OpenUrl = (url, { credentials, headers, ...more }, signal) => {
    options.beforeOpen?.();
    return guardedOpen(ports, url, {
      ...more,
      headers: {
        ...headers,
        ...(credentials ? { authorization: basicAuthorization(credentials.login, credentials.password) } : {}),
      },
    }, signal);
  };
  const random = () => 0;
  const spent: number[] = [];
  const guide = new Guide({ store, clock, log, open, random, spent: (bytes) => void spent.push(bytes) });
  const lists = new Lists({
    store,
    files: ports.files,
    stateDir,
    clock,
    log,
    sealer: loadSecretBox(ports.files, stateDir),
    random,
    open,
    onChanged: () => void (options.followsGuides === true && guide.wake()),
  });
  const playlist = new Playlist(store, clock);
  try {
    await body({
      lists,
      guide,
      store,
      playlist,
      logged,
      spent,
      async items() {
        const all = JSON.parse(`[${await textOf(playlist.json())}]`) as TestItem[];
        return new Map(all.map((item) => [item.title, item]));
      },
    });
  } finally {
    await lists.close();
    await guide.close();
    await store.close();
  }
}

/** A list of these entries. */
export const listOf = (...entries: readonly [title: string, url: string, extra?: string][]): string =>
  "#EXTM3U\n" + entries.map(([title, url, extra = ""]) => `#EXTINF:-1${extra},${title}\n${url}\n`).join("");

/** Asserts that `action` fails with a MillraceError of such a message. */
export async function fails(action: () => Promise<unknown>, message: RegExp): Promise<void> {
  const error = await assertRejects(action, MillraceError);
  assertMatch((error as Error).message, message);
}

/** A server for each test of one file, and lists that are fetched from it. */
export interface ListTests {
  readonly server: ListServer;
  /** What adds such a list. */
  added(more?: Partial<NewExternalPlaylist>): NewExternalPlaylist;
  /** Adds a list and fetches it. */
  add(lists: TestLists["lists"], more?: Partial<NewExternalPlaylist>): Promise<number>;
}

/**
 * Starts a server before each test of the calling file: what one test still has under way when it ends must not reach the
 * server of the next.
 */
export function useListServer(): ListTests {
  let server: ListServer;
  beforeEach(async () => {
    server = await startListServer();
  });
  afterEach(() => server.close());
  const added: ListTests["added"] = (more = {}) => ({
    type: "content",
    category: "",
    name: "list",
    url: `${server.url}/list.m3u`,
    updateInterval: 0,
    allowPrivate: true,
    ...more,
  });
  return {
    server: {
      get url() {
        return server.url;
      },
      get behaviour() {
        return server.behaviour;
      },
      get requests() {
        return server.requests;
      },
      close: () => server.close(),
    },
    added,
    async add(lists, more = {}) {
      const id = await lists.addExternal(added(more), false);
      await lists.updateExternal(id);
      return id;
    },
  };
}
