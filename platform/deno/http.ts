/** HTTP serving on Deno.serve. */
import type { HttpPort, HttpServer } from "../../src/ports.ts";
import { FREED, lenderOf } from "../../src/bytes/lent-chunks.ts";
import { bindError } from "../shared/os-error.ts";

/** HTTP on Deno. */
export const denoHttp: HttpPort = {
  serve(at, handler): Promise<HttpServer> {
    const dropping = new AbortController();
    const running = new Running();
    let closing: Promise<void> | null = null;
    let server: Deno.HttpServer<Deno.NetAddr>;
    try {
      server = Deno.serve({
        hostname: at.host,
        port: at.port,
        signal: dropping.signal,
        onListen: () => {},
        onError: () => new Response("internal error", { status: 500 }),
      }, (request, { remoteAddr: { hostname, port } }) => {
        if (closing !== null) return new Response("closing", { status: 503, headers: { connection: "close" } });
        const info = { remote: { host: hostname, port } };
        if (request.method === "HEAD") return running.track(async () => withoutLength(await handler(request, info)));
        return running.track(() => handler(request, info));
      });
    } catch (error) {
      return Promise.reject(bindError(error, at, "HTTP"));
    }
    return Promise.resolve({
      address: { host: server.addr.hostname, port: server.addr.port },
      close: (graceMs) => (closing ??= close(server, running, dropping, graceMs)),
    });
  },
};

/**
 * Deno.serve can let answers end or drop them, but not try the one and then do the other. So answers are waited for
 * here, new requests being refused meanwhile; then it ends in order, or everything is dropped.
 */
async function close(
  server: Deno.HttpServer,
  running: Running,
  dropping: AbortController,
  graceMs: number,
): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((resolve) => timer = setTimeout(() => resolve(false), graceMs));
  const idle = await Promise.race([late, running.idle().then(() => true)]);
  if (idle) {
    // What the bodies gave may still be on its way; a client that reads nothing more must not hold this up.
    await Promise.race([late, server.shutdown().catch(() => {})]);
  } else {
    dropping.abort();
    await server.finished.catch(() => {});
  }
  clearTimeout(timer);
}

/** Deno.serve would say `Content-Length: 0` of an answer to HEAD that has no body, which players take for an empty film. */
function withoutLength(response: Response): Response {
  if (response.body !== null || response.headers.has("content-length")) return response;
  if (response.status === 204 || response.status === 304) return response;
  return new Response(new ReadableStream({ start: (controller) => controller.close() }), response);
}

/** Counts what is being answered. */
class Running {
  private count = 0;
  private whenIdle: (() => void)[] = [];

  /** The handler's answer with a body that is counted. Passing the chunks on costs no measurable throughput. */
  async track(answer: () => Response | Promise<Response>): Promise<Response> {
    this.count++;
    let counted = true;
    const over = () => {
      if (counted) this.finished();
      counted = false;
    };
    try {
      const response = await answer();
      if (response.body !== null) return new Response(watch(response.body, over), response);
      over();
      return response;
    } catch (error) {
      over();
      throw error;
    }
  }

  /** Resolves when nothing is being answered. */
  idle(): Promise<void> {
    return this.count === 0 ? Promise.resolve() : new Promise((resolve) => this.whenIdle.push(resolve));
  }

  private finished(): void {
    this.count--;
    if (this.count === 0) { for (const wake of this.whenIdle.splice(0)) wake(); }
  }
}

/**
 * `body`, calling `over` once it has ended, failed or been cancelled. When the next chunk is asked for, the runtime holds
 * the memory of the last one by itself until it is sent: it may be let go of here, but not be used again.
 */
function watch(body: ReadableStream<Uint8Array>, over: () => void): ReadableStream<Uint8Array> {
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader();
  const isFreed = lenderOf(body) === FREED;
  let last: Uint8Array | undefined;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (last !== undefined) FREED.release(last);
      try {
        const { done, value } = await reader.read();
        last = isFreed ? value : undefined;
        if (!done) return controller.enqueue(value);
        controller.close();
      } catch (error) {
        controller.error(error);
      }
      over();
    },
    cancel(reason) {
      over();
      return reader.cancel(reason);
    },
  }, { highWaterMark: 0 });
}
