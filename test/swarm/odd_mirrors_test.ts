/** Mirrors as users have met them, at which other clients stopped, asked forever or read the wrong bytes. */
import { createServer, type Socket } from "node:net";
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { type Handle, mirror, rangeOf, sendRange, withMirrors } from "./support/mirrors.ts";
import { makeTorrent, type TestTorrent } from "./support/torrent.ts";

const SIZE = 300_000;

/** Sends a range over a bare connection: a head as given, then the bytes. */
function bare(torrent: TestTorrent, head: (from: number, to: number) => string): Handle {
  return (request, response) => {
    const [from, to] = rangeOf(request);
    const socket = response.socket!;
    socket.write(head(from, to));
    socket.end(torrent.data.subarray(from, to + 1));
  };
}

/** Redirects `asked` to what `to` makes of its path. */
const redirect = (to: (path: string) => string): Handle => (request, response) =>
  void response.writeHead(302, { location: to(request.url!) }).end();

const MIRRORS: readonly [name: string, handle: (torrent: TestTorrent) => Handle][] = [
  ["answers by HTTP/1.0 and says no length", (torrent) =>
    bare(torrent, (from, to) => {
      return `HTTP/1.0 206 Partial Content\r\nContent-Range: bytes ${from}-${to}/${SIZE}\r\n\r\n`;
    })],
  ["closes the connection after each answer", (torrent) =>
    bare(torrent, (from, to) => {
      const fields = `Content-Range: bytes ${from}-${to}/${SIZE}\r\nContent-Length: ${to - from + 1}`;
      return `HTTP/1.1 206 Partial Content\r\n${fields}\r\nConnection: close\r\n\r\n`;
    })],
  ["does not know the size of the file, and has a weak tag", (torrent) =>
    bare(torrent, (from, to) => {
      const fields = `Content-Range: bytes ${from}-${to}/*\r\nETag: W/"x"\r\nConnection: close`;
      return `HTTP/1.1 206 Partial Content\r\n${fields}\r\n\r\n`;
    })],
  ["sends chunks of a few bytes", (torrent) => (request, response) => {
    const [from, to] = rangeOf(request);
    response.writeHead(206, { "content-range": `bytes ${from}-${to}/${SIZE}` });
    for (let at = from; at <= to; at += 999) response.write(torrent.data.subarray(at, Math.min(at + 999, to + 1)));
    response.end();
  }],
  ["redirects twice, by relative addresses", (torrent) => (request, response) => {
    if (request.url === "/noise-7") return redirect(() => "./a/b?x=1")(request, response);
    if (request.url === "/a/b?x=1") return redirect(() => "../c")(request, response);
    sendRange(torrent.data, request, response);
  }],
];
for (const [name, handle] of MIRRORS) {
  test(`WebSeed reads from a mirror that ${name}`, async () => {
    const torrent = await makeTorrent({ bytes: SIZE });
    await withMirrors(torrent, [handle(torrent)], async ({ webs, read }) => {
      assertEquals(await read(0, 0, SIZE), torrent.data);
      assert(webs[0]!.asked.length < 30, `${webs[0]!.asked.length} requests`);
    }, { path: "noise-7" });
  });
}

const USELESS: readonly [name: string, handle: Handle][] = [
  ["refuses every range by 416", (_request, response) => void response.writeHead(416).end()],
  ["sends the beginning whatever is asked", (request, response) => {
    const [from, to] = rangeOf(request);
    response.writeHead(206, { "content-range": `bytes 0-${SIZE - 1}/${SIZE}` });
    response.end(new Uint8Array(to - from + 1));
  }],
  ["sends a page with status 200", (_request, response) => void response.end("<html>This file is gone</html>")],
  ["sends a page that never ends with status 206", (request, response) => {
    const [from] = rangeOf(request);
    response.writeHead(206, { "content-range": `bytes ${from}-` });
    const more = () => void (response.destroyed || (response.write(new Uint8Array(65_536)), setTimeout(more, 1)));
    more();
  }],
  ["answers nothing", () => {}],
  ["speaks no HTTP", (_request, response) => void response.socket!.end("220 ready\r\n")],
  ["redirects to itself", redirect((path) => path)],
  ["redirects to another scheme", redirect(() => "ftp://mirror.example/file")],
];
for (const [name, handle] of USELESS) {
  test(`WebSeed leaves a mirror that ${name} to others`, async () => {
    const torrent = await makeTorrent({ bytes: SIZE });
    await withMirrors(torrent, [handle, mirror(torrent)], async ({ webs, read }) => {
      assertEquals(await read(0, 0, SIZE), torrent.data);
      assert(webs[0]!.asked.length <= 12, `${webs[0]!.asked.length} requests`);
    }, { hurry: 4 });
  });
}

test("WebSeed reads files that a mirror redirects each to a place of its own, and files without a byte", async () => {
  const torrent = await makeTorrent({ bytes: SIZE, files: [100_000, 0, 1, 199_999] });
  const places = ["/one", "/none", "/two", "/three"];
  const handle: Handle = (request, response) => {
    const index = places.indexOf(request.url!);
    if (index < 0) {
      const asked = torrent.metainfo.files.find(({ path }) => decodeURIComponent(request.url!).endsWith(path))!;
      return void response.writeHead(301, { location: places[asked.index]! }).end();
    }
    const { offset, sizeBytes } = torrent.metainfo.files[index]!;
    sendRange(torrent.data.subarray(offset, offset + sizeBytes), request, response);
  };
  await withMirrors(torrent, [handle], async ({ webs, read }) => {
    assertEquals(await read(0, 0, 100_000), torrent.data.slice(0, 100_000));
    assertEquals(await read(2, 0, 1), torrent.data.slice(100_000, 100_001));
    assertEquals(await read(3, 0, 199_999), torrent.data.slice(100_001));
    assert(!webs[0]!.asked.some(({ url }) => url === "/none"));
  });
});

test("WebSeed asks a mirror again when the address that it redirected to has expired meanwhile", async () => {
  const torrent = await makeTorrent({ bytes: 2_000_000 });
  let uses = 0;
  const token = () => `/token/${Math.floor(uses / 3)}`;
  const handle: Handle = (request, response) => {
    if (!request.url!.startsWith("/token/")) return void response.writeHead(302, { location: token() }).end();
    if (request.url !== token()) return void response.writeHead(403).end();
    uses++;
    sendRange(torrent.data, request, response);
  };
  await withMirrors(torrent, [handle], async ({ read }) => {
    assertEquals(await read(0, 0, 2_000_000), torrent.data);
  }, { path: "noise-7", hurry: 4 });
});

test("WebSeed soon asks again for a file that a mirror says it lacks after it has sent some of it", async () => {
  const torrent = await makeTorrent({ bytes: 2_000_000 });
  let asked = 0;
  const handle: Handle = (request, response) => {
    if (asked++ === 1) response.writeHead(404).end();
    else sendRange(torrent.data, request, response);
  };
  await withMirrors(torrent, [handle], async ({ read }) => {
    assertEquals(await read(0, 0, 2_000_000), torrent.data);
  }, { hurry: 4 });
});

test("WebSeed asks without the part of its address that follows a #", async () => {
  const torrent = await makeTorrent({ bytes: SIZE });
  await withMirrors(torrent, [(request, response) => sendRange(torrent.data, request, response)], async (at) => {
    assertEquals(await at.read(0, 0, SIZE), torrent.data);
    assertEquals(new Set(at.webs[0]!.asked.map(({ url }) => url)), new Set(["/noise-7"]));
  }, { path: "noise-7#mirror" });
});

test("WebSeed goes on when a mirror resets every other connection", async () => {
  const torrent = await makeTorrent({ bytes: SIZE });
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    if (connections++ % 2 === 0) return void socket.resetAndDestroy();
    socket.on("data", (request) => {
      const [, from, to] = /range: bytes=(\d+)-(\d+)/i.exec(request.toString("latin1"))!;
      const bytes = torrent.data.subarray(Number(from), Number(to) + 1);
      socket.write(`HTTP/1.1 206 OK\r\nContent-Range: bytes ${from}-${to}/${SIZE}\r\nConnection: close\r\n\r\n`);
      socket.end(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await withMirrors(torrent, [], async ({ read }) => {
    assertEquals(await read(0, 0, SIZE), torrent.data);
  }, { more: [`http://127.0.0.1:${port}/noise-7`], hurry: 4 });
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});
