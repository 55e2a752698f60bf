/** HTTP serving on Bun.serve. */
/// <reference path="./bun-api.d.ts" />
import type { HttpPort, HttpServer } from "../../src/ports.ts";
import { bindError } from "../shared/os-error.ts";

/** HTTP on Bun. */
export const bunHttp: HttpPort = {
  serve(at, handler): Promise<HttpServer> {
    let server: BunServer;
    try {
      server = Bun.serve({
        hostname: at.host,
        port: at.port,
        reusePort: false,
        // A paused player is no reason to hang up: the engine has its own limits.
        idleTimeout: 0,
        development: false,
        fetch(request, serving) {
          const remote = serving.requestIP(request);
          return handler(request, { remote: { host: remote?.address ?? "", port: remote?.port ?? 0 } });
        },
        error: () => new Response("internal error", { status: 500 }),
      });
    } catch (error) {
      return Promise.reject(bindError(error, at, "HTTP"));
    }
    let closing: Promise<void> | null = null;
    return Promise.resolve({
      address: { host: at.host, port: server.port },
      close(graceMs: number) {
        closing ??= new Promise((resolve) => {
          const timer = setTimeout(() => void server.stop(true).then(resolve), graceMs);
          void server.stop(false).then(() => {
            clearTimeout(timer);
            resolve();
          });
        });
        return closing;
      },
    });
  },
};
