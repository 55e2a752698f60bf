/** HTTP serving on Deno.serve. */
import type { HttpPort, HttpServer } from "../../src/ports.ts";
import { bindError } from "../shared/os-error.ts";

/** HTTP on Deno. */
export const denoHttp: HttpPort = {
  serve(at, handler): Promise<HttpServer> {
    const dropping = new AbortController();
    let server: Deno.HttpServer<Deno.NetAddr>;
    try {
      server = Deno.serve(
        { hostname: at.host, port: at.port, signal: dropping.signal, onListen: () => {} },
        (request, { remoteAddr }) => handler(request, { remote: { host: remoteAddr.hostname, port: remoteAddr.port } }),
      );
    } catch (error) {
      return Promise.reject(bindError(error, at, "HTTP"));
    }
    let closing: Promise<void> | null = null;
    return Promise.resolve({
      address: { host: server.addr.hostname, port: server.addr.port },
      close(graceMs: number) {
        closing ??= (async () => {
          const timer = setTimeout(() => dropping.abort(), graceMs);
          await server.shutdown().catch(() => {});
          await server.finished.catch(() => {});
          clearTimeout(timer);
        })();
        return closing;
      },
    });
  },
};
