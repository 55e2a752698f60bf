/** An HTTP tracker inside the test. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** One request as the tracker saw it. */
export interface SeenAnnounce {
  readonly path: string;
  /** Raw (still escaped) query fields. */
  readonly query: ReadonlyMap<string, string>;
  readonly userAgent: string | undefined;
}

/** A running tracker. */
export interface HttpTracker {
  readonly origin: string;
  readonly seen: SeenAnnounce[];
  close(): Promise<void>;
}

/** Starts a tracker whose replies come from `reply`. */
export async function startHttpTracker(
  reply: (announce: SeenAnnounce, response: ServerResponse, request: IncomingMessage) => void,
): Promise<HttpTracker> {
  const seen: SeenAnnounce[] = [];
  const server = createServer((request, response) => {
    const [path, query = ""] = (request.url ?? "").split("?");
    const fields = query.split("&").map((field) => field.split("=") as [string, string]);
    const announce = { path: path!, query: new Map(fields), userAgent: request.headers["user-agent"] };
    seen.push(announce);
    reply(announce, response, request);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    seen,
    close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      return closed;
    },
  };
}

/** A byte string of the four address bytes and the port. */
export function compact(...peers: readonly string[]): Uint8Array {
  return new Uint8Array(peers.flatMap((peer) => {
    const [host, port] = peer.split(":");
    return [...host!.split(".").map(Number), Number(port) >> 8, Number(port) & 255];
  }));
}
