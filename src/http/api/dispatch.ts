/** One call of the JSON method API: who may, with what, and how the answer is wrapped. B3, B21–B25. */
import type { AddressClass } from "../address.ts";
import { API_CODES, ApiError, failureEnvelope, toApiError } from "./codes.ts";
import { type ApiInput, readInput } from "./input.ts";
import { JsonStream } from "./json-stream.ts";
import type { Method } from "./method.ts";
import { isStrictlySameOrigin, pageOrigin } from "./origin.ts";
import { type ParamReader, paramReader } from "./params.ts";
import { KEEP_MS, Picture } from "./picture.ts";
import type { ApiParts } from "./parts.ts";

/** Calls at once: those that wait for peers are held for up to a minute each. */
export const MAX_CALLS = 256;
/** Versions that clients send (B25). */
const API_VERSIONS = new Set(["1", "2", "3"]);

/** What the transport knows of a request. */
export interface Caller {
  readonly addressClass: AddressClass;
  /** Base URL of the engine as this request names it. */
  readonly ownUrl: string;
}

/** Answers API requests. */
export type Dispatch = (request: Request, caller: Caller) => Promise<Response>;

/** The dispatcher over `methods`. */
export function createDispatch(methods: readonly Method[], parts: ApiParts): Dispatch {
  const byName = new Map<string, { method: Method; read: ParamReader }>();
  for (const method of methods) byName.set(method.name, { method, read: paramReader(method) });
  let running = 0;

  const call = async (request: Request, caller: Caller, input: ApiInput): Promise<[Method, unknown]> => {
    const name = input.texts("method")[0] ?? "";
    if (name === "") throw new ApiError(API_CODES.missingParameter, "missing parameter: method");
    const found = byName.get(name);
    if (found === undefined) throw new ApiError(API_CODES.unknownMethod, "unknown method");
    const version = input.texts("api_version")[0] ?? "";
    if (version !== "" && !API_VERSIONS.has(version)) {
      throw new ApiError(API_CODES.unsupportedApiVersion, "unsupported api_version: 1, 2 and 3 are served");
    }
    const { method, read } = found;
    requireAccess(method, request, caller, input.texts("token")[0] ?? "", parts);
    const local = caller.addressClass === "loopback" && pageOrigin(request, caller.ownUrl) !== "foreign";
    const result = await method.handle(read(input), {
      parts,
      addressClass: caller.addressClass,
      callerIsLocal: local,
      signal: request.signal,
    });
    return [method, result];
  };

  return async (request, caller) => {
    let name = "";
    if (running >= MAX_CALLS) return failure(new ApiError(API_CODES.unavailable, "too many calls at once", 429));
    running++;
    try {
      const input = await readInput(request);
      name = (input.texts("method")[0] ?? "").slice(0, 64);
      const [method, result] = await call(request, caller, input);
      if (result instanceof Picture) return picture(result);
      const body = result instanceof JsonStream
        ? await result.wrapped('{"result":', ',"error":null}')
        : JSON.stringify({ result, error: null });
      return answer(body, 200, method.openToPages === true);
    } catch (error) {
      const told = toApiError(error);
      const isFault = told.code === API_CODES.internal;
      parts.log.log(isFault ? "error" : "debug", "an API call failed", {
        method: name,
        code: told.code,
        error: isFault ? String(error) : told.message,
      });
      return failure(told);
    } finally {
      running--;
    }
  };
}

/** Address first, then the page, then the token: a caller who may not call at all learns nothing about tokens. */
function requireAccess(method: Method, request: Request, caller: Caller, token: string, parts: ApiParts): void {
  const denied = (message: string, status: 200 | 403) => new ApiError(API_CODES.accessDenied, message, status);
  if (!method.remote && caller.addressClass !== "loopback") {
    throw denied("access denied: this method is for callers on this machine", 403);
  }
  if (method.sameOriginOnly && !isStrictlySameOrigin(request, caller.ownUrl)) {
    throw denied("access denied: cross-origin requests are refused", 200);
  }
  if (method.public) return;
  if (pageOrigin(request, caller.ownUrl) === "foreign") {
    throw denied("access denied: cross-origin requests are refused", 200);
  }
  if (token === "") throw denied("access denied: token is missing", 200);
  if (!parts.token.matches(token)) throw denied("access denied: token is wrong", 200);
}

/** The failure envelope as a response. */
export function failure(error: ApiError): Response {
  return answer(JSON.stringify(failureEnvelope(error)), error.status, false);
}

function picture({ bytes, type }: Picture): Response {
  return new Response(bytes as Uint8Array<ArrayBuffer>, {
    headers: {
      "content-type": type,
      "cache-control": `private, max-age=${KEEP_MS / 1000}`,
      "x-content-type-options": "nosniff",
      "cross-origin-resource-policy": "same-origin",
    },
  });
}

function answer(body: string | ReadableStream<Uint8Array>, status: number, openToPages: boolean): Response {
  return new Response(body, {
    status,
    headers: {
      "content-type": "application/json; charset=utf-8",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      ...(openToPages
        ? { "access-control-allow-origin": "*" }
        : { "cross-origin-resource-policy": "same-origin", vary: "origin" }),
    },
  });
}
