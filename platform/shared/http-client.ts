/** HTTP requests to a chosen address, on node:http and node:https: all three runtimes honour their `lookup` option. */
import http from "node:http";
import https from "node:https";
import net from "node:net";
import { abortError, MillraceError } from "../../src/errors.ts";
import type { HttpClientAnswer, HttpClientPort, HttpClientRequest } from "../../src/ports.ts";
import { headersOf } from "./http-fields.ts";
import { openLenient } from "./lenient-http.ts";
import { webReadable } from "./node-streams.ts";
import { brokenError, connectError } from "./os-error.ts";

/** Settings of `createHttpClient`. */
export interface HttpClientOptions {
  /** Certificates to trust instead of the runtime's, PEM. */
  readonly ca?: string;
}

/** See `HttpClientPort`. */
export function createHttpClient(options: HttpClientOptions = {}): HttpClientPort {
  return { open: (request) => open(request, options) };
}

function open(request: HttpClientRequest, { ca }: HttpClientOptions): Promise<HttpClientAnswer> {
  const { url, address, method, headers, signal } = request;
  const isTls = url.protocol === "https:";
  const target = { host: address, port: Number(url.port || (isTls ? 443 : 80)) };
  const family = net.isIP(address);
  if (signal.aborted) return Promise.reject(abortError(signal));
  // A name would be resolved again, possibly to another address than the one that was checked.
  if (family === 0) return Promise.reject(connectError(new Error("not a literal address"), target));
  if (request.isLenient === true) return openLenient(request, ca);
  const lookup: net.LookupFunction = (_name, { all }, found) =>
    all ? found(null, [{ address, family }]) : found(null, address, family);
  return new Promise((resolve, reject) => {
    const fields = {
      hostname: url.hostname.replace(/^\[|\]$/g, ""),
      port: target.port,
      path: url.pathname + url.search,
      method,
      headers: { host: url.host, ...Object.fromEntries(headers) },
      lookup,
      // An agent finds kept connections by host name, not by address.
      agent: false,
    };
    const sent = isTls ? https.request({ ...fields, ...(ca === undefined ? {} : { ca }) }) : http.request(fields);
    const abort = () => sent.destroy(abortError(signal));
    const fail = (error: Error) => {
      signal.removeEventListener("abort", abort);
      reject(signal.aborted ? abortError(signal) : connectError(error, target));
    };
    signal.addEventListener("abort", abort, { once: true });
    sent.once("error", fail);
    sent.once("response", (message) => {
      signal.removeEventListener("abort", abort);
      const stop = () => message.destroy(abortError(signal));
      signal.addEventListener("abort", stop, { once: true });
      message.once("close", () => signal.removeEventListener("abort", stop));
      sent.off("error", fail);
      // From here on the response reports errors.
      sent.on("error", () => {});
      resolve({
        status: message.statusCode ?? 0,
        headers: headersOf(message.rawHeaders),
        body: webReadable(message, (error) => {
          if (signal.aborted) return abortError(signal);
          return error instanceof MillraceError ? error : brokenError(error, target);
        }),
      });
    });
    sent.end();
  });
}
