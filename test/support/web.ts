/** A web server of a test's own, on loopback. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A running server. */
export interface TestWeb {
  /** `http://127.0.0.1:port`, without a slash. */
  readonly base: string;
  readonly port: number;
  /** Requests so far. */
  readonly asked: readonly IncomingMessage[];
  close(): Promise<void>;
}

/** Serves `handle`. */
export async function serveWeb(
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<TestWeb> {
  const asked: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    asked.push(request);
    handle(request, response);
  });
  const port = await listen(server);
  return {
    base: `http://127.0.0.1:${port}`,
    port,
    asked,
    close: () => stop(server),
  };
}

/** Listens on a free port of loopback and answers it. */
export async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

/** Drops all connections and closes. */
export function stop(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
