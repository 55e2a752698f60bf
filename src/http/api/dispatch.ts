/** One call of the JSON method API: who may, with what, and how the answer is wrapped. B3, B21–B25. */
import type { AddressClass } from "../address.ts";
import { API_CODES, ApiError, failureEnvelope, toApiError } from "./codes.ts";
import { type ApiInput, queryFields, readInput } from "./input.ts";
import { JsonStream } from "./json-stream.ts";
import type { Method } from "./method.ts";
import { isStrictlySameOrigin, pageOrigin } from "./origin.ts";
import { type ParamReader, paramReader } from "./params.ts";
import { KEEP_MS, Picture } from "./picture.ts";
import type { ApiParts } from "./parts.ts";
import type { Spooled } from "../../playlist/spool.ts";
import { mayCarryFile, readUpload } from "./upload.ts";

/** Calls at once: those that wait for peers are held for up to a minute each. */
const MAX_CALLS = 256;
/** Versions that clients send (section 9, B25). */
const API_VERSIONS = new Set(["1", "2", "3"]);

/** What the transport knows of a request. */
export interface Caller {
  readonly addressClass: AddressClass;
  readonly clientHost: string;
  /** Base URL of the engine as this request names it. */
  readonly ownUrl: string;
}

/** The parameters of a call. */
interface Received {
  readonly input: ApiInput;
  readonly upload: Spooled | undefined;
}

/** Answers API requests. */
export type Dispatch = (request: Request, caller: Caller) => Promise<Response>;

/** The dispatcher over `methods`. */
export function createDispatch(methods: readonly Method[], parts: ApiParts): Dispatch {
  const byName = new Map<string, { method: Method; read: ParamReader }>();
  for (const method of methods) byName.set(method.name, { method, read: paramReader(method) });
  let running = 0;

  /** Reads the parameters; a large file only once it is known that the caller may send it. */
  const receive = async (request: Request, caller: Caller): Promise<Received> => {
    const fields = queryFields(request);
    const method = byName.get(fields.input.texts("method")[0] ?? "")?.method;
    const token = fields.input.texts("token")[0] ?? "";
    if (method?.upload === undefined || !mayCarryFile(request) || (token === "" && !method.public)) {
      return { input: await readInput(request, parts.clock), upload: undefined };
    }
    await parts.token.refresh();
    requireAccess(method, request, caller, token, parts);
    return await readUpload(request, fields, method.upload, (chunks) => parts.lists.keep(chunks), parts.clock);
  };

  const call = async (request: Request, caller: Caller, { input, upload }: Received): Promise<[Method, unknown]> => {
    const name = input.texts("method")[0] ?? "";
    if (name === "") throw new ApiError(API_CODES.missingParameter, "missing parameter: method");
    const found = byName.get(name);
    if (found === undefined) throw new ApiError(API_CODES.unknownMethod, "unknown method");
    const version = input.texts("api_version")[0] ?? "";
    if (version !== "" && !API_VERSIONS.has(version)) {
      throw new ApiError(API_CODES.unsupportedApiVersion, "unsupported api_version: 1, 2 and 3 are served");
    }
    const { method, read } = found;
    await parts.token.refresh();
    requireAccess(method, request, caller, input.texts("token")[0] ?? "", parts);
    const local = caller.addressClass === "loopback" && pageOrigin(request, caller.ownUrl) !== "foreign";
    const result = await method.handle(read(input), {
      parts,
      addressClass: caller.addressClass,
      clientHost: caller.clientHost,
      ownUrl: caller.ownUrl,
      callerIsLocal: local,
      upload,
      signal: AbortSignal.any([request.signal, parts.closing]),
    });
    return [method, result];
  };

  return async (request, caller) => {
    let name = "";
    let received: Received | null = null;
    if (running >= MAX_CALLS) return failure(new ApiError(API_CODES.unavailable, "too many calls at once", 429));
    running++;
    try {
      received = await receive(request, caller);
      name = (received.input.texts("method")[0] ?? "").slice(0, 64);
      const [method, result] = await call(request, caller, received);
      if (result instanceof Picture) return picture(result);
      const body = result instanceof JsonStream
        ? await result.wrapped('{"result":', ',"error":null}')
        : JSON.stringify({ result, error: null });
      return answer(body, 200, method.openToPages === true);
    } catch (error) {
      await received?.upload?.remove();
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
  const response = answer(JSON.stringify(failureEnvelope(error)), error.status, false);
  if (error.retryAfterS !== null) response.headers.set("retry-after", String(error.retryAfterS));
  return response;
}

function picture({ bytes, type }: Picture): Response {
  return new Response(bytes as Uint8Array<ArrayBuffer>, {
    headers: {
      "content-type": type,
      "cache-control": `private, max-age=${KEEP_MS / 1000}`,
      "x-content-type-options": "nosniff",
      "cross-origin-resource-policy": "same-origin",
      // Should an SVG be opened as a page: no scripts, and nothing from elsewhere.
      "content-security-policy": "default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox",
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
