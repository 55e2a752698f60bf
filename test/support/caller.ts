/** Callers of any address over a real HTTP server: a field of the request, which the engine does not know, names it. */
import type { Engine } from "../../src/engine.ts";
import type { RequestInfo } from "../../src/ports.ts";

/** The field. */
export const FROM = "x-test-caller";

/** A server's handler that calls `engine` as the caller that the request names, else as the socket's other end. */
export function byNamedCaller(engine: Pick<Engine, "fetch">) {
  return (request: Request, info: RequestInfo): Promise<Response> => {
    const host = request.headers.get(FROM);
    return engine.fetch(request, host === null ? info : { remote: { host, port: 1 } });
  };
}
