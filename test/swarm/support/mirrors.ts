/** Web servers that a swarm has for web seeds. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "../../../src/ports.ts";
import { serveWeb, type TestWeb } from "../../support/web.ts";
import { hurried, Lab, soon } from "./lab.ts";
import type { TestTorrent } from "./torrent.ts";

/** What a server does with a request. */
export type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** The asked range, both ends included. */
export function rangeOf({ headers }: IncomingMessage): [from: number, to: number] {
  const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? "")!;
  return [Number(from), Number(to)];
}

/** Sends the asked range of `data`. */
export function sendRange(data: Uint8Array, request: IncomingMessage, response: ServerResponse): void {
  const [from, to] = rangeOf(request);
  response.writeHead(206, { "content-range": `bytes ${from}-${to}/${data.length}` });
  response.end(data.subarray(from, to + 1));
}

/** Serves the files of a torrent; what `files` gives for an index is sent instead, null: it is missing. */
export function mirror(torrent: TestTorrent, files: Readonly<Record<number, Uint8Array | null>> = {}): Handle {
  return (request, response) => {
    const path = decodeURIComponent(request.url!);
    const file = torrent.metainfo.files.find((known) => path.endsWith(`/${known.path}`))!;
    const own = torrent.data.subarray(file.offset, file.offset + file.sizeBytes);
    const data = file.index in files ? files[file.index]! : own;
    if (data === null) response.writeHead(404).end();
    else sendRange(data, request, response);
  };
}

/** Runs `body` with web servers and a swarm that has them for web seeds, and knows no peers. */
export async function withMirrors(
  torrent: TestTorrent,
  handles: readonly Handle[],
  body: (at: {
    webs: readonly TestWeb[];
    read: (file: number, offset: number, length: number) => Promise<Uint8Array>;
    log: readonly string[];
  }) => Promise<void>,
  options: { more?: readonly string[]; path?: string; user?: string; hurry?: number } = {},
): Promise<void> {
  const { more = [], path = "", user = "", hurry = 1 } = options;
  await Lab.run(async (lab) => {
    const webs: TestWeb[] = [];
    for (const handle of handles) webs.push(await serveWeb(handle));
    const lines: string[] = [];
    const log: Logger = { log: (...line) => void lines.push(JSON.stringify(line)), child: () => log };
    try {
      const node = await lab.node({ ports: { ...hurried(lab.ports, hurry), log } });
      const webSeeds = [...more, ...webs.map(({ base }) => `${base.replace("//", `//${user}`)}/${path}`)];
      const { swarm } = node.join({ metainfo: { ...torrent.metainfo, webSeeds } });
      await swarm.metadata(soon());
      await body({
        webs,
        read: (file, offset, length) => swarm.openReader(file).read(offset, length, { signal: soon() }),
        log: lines,
      });
    } finally {
      for (const web of webs) await web.close();
    }
  });
}
