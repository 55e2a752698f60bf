/** A server of the platform, raw clients, and bodies without an end. */
import net from "node:net";
import type { HttpServer, RequestInfo } from "../../src/ports.ts";
import { deferred, LOOPBACK, ports } from "./support.ts";

/** What the server answers. */
export type Handler = (request: Request, info: RequestInfo) => Response | Promise<Response>;

/** Runs `body` with a server. */
export async function withServer(
  handler: Handler,
  body: (base: string, server: HttpServer) => Promise<void>,
): Promise<void> {
  const server = await ports.http.serve(LOOPBACK, handler);
  try {
    await body(`http://127.0.0.1:${server.address.port}`, server);
  } finally {
    await server.close(0);
  }
}

/** Sends `head` unchanged; returns the socket. */
export function raw(base: string, head: string): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(Number(new URL(base).port), "127.0.0.1", () => {
      socket.write(head);
      resolve(socket);
    });
    socket.on("error", reject);
  });
}

/** Size of the chunks of `endless`, bytes. */
export const CHUNK = 64 * 1024;

/** An endless body that counts pulls and reports when it was cancelled. */
export function endless() {
  const cancelled = deferred("cancel()");
  const state = { pulledBytes: 0, cancelled: cancelled.promise };
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      state.pulledBytes += CHUNK;
      controller.enqueue(new Uint8Array(CHUNK));
    },
    cancel: () => cancelled.resolve(),
  }, { highWaterMark: 0 });
  return { state, body };
}
