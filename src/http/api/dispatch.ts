/** One call of the JSON method API: whether the caller may make it, its parameters, and the envelope of its result. */
import * as z from "zod";
import { hasCode } from "../../errors.ts";
import type { BodyHold, Leave, RequestAdmission } from "../admission.ts";
import { shortened } from "../errors.ts";
import { API_CODES, ApiError, failureEnvelope, toApiError } from "./codes.ts";
import { type ApiInput, MAX_BODY_BYTES, MAX_FORM_BYTES, queryFields, readInput } from "./input.ts";
import { JsonStream } from "./json-stream.ts";
import type { Method } from "./method.ts";
import { MethodAccess } from "./method-access.ts";
import { Noted } from "./noted.ts";
import { allowReading } from "../page-fields.ts";
import type { RequestCaller } from "../request-caller.ts";
import { type ParamReader, paramReader } from "./params.ts";
import { KEEP_MS, Picture } from "./picture.ts";
import type { ApiParts } from "./parts.ts";
import { isUser } from "../user.ts";
import type { Spooled } from "../../playlist/spool.ts";
import { mayCarryFile, readUpload } from "./upload.ts";

/** When a caller that was turned away may try again, s: most calls take less. */
const RETRY_AFTER_S = 5;
/** Versions that clients send (section 9). */
const API_VERSIONS = new Set(["1", "2", "3"]);

/** The parameters of a call. */
interface Received {
  readonly input: ApiInput;
  readonly upload: Spooled | undefined;
}

/** Serves API requests. `method` is the name in the path; without it the parameter names the method. */
export type ApiDispatch = (request: Request, caller: RequestCaller, method?: string) => Promise<Response>;

/** The dispatcher over `methods`. */
export function createDispatch(methods: readonly Method[], parts: ApiParts, admission: RequestAdmission): ApiDispatch {
  const access = new MethodAccess(parts);
  const byName = new Map<string, { method: Method; read: ParamReader }>();
  for (const method of methods) byName.set(method.name, { method, read: paramReader(method) });

  /** Reads the parameters. Reads no more of the body than the query shows the caller may send. */
  const receive = async (
    request: Request,
    caller: RequestCaller,
    hold: BodyHold,
    named: string | undefined,
  ): Promise<Received> => {
    const fields = queryFields(request, named);
    const name = fields.input.texts("method")[0] ?? "";
    const method = name === "" ? undefined : methodOf(name).method;
    const token = fields.input.texts("token")[0] ?? "";
    const isTrusted = method !== undefined && await access.requireBeforeBody(method, { request, caller, token });
    if (isTrusted && method.upload !== undefined && mayCarryFile(request)) {
      return await readUpload(request, fields, method.upload, (chunks) => parts.lists.keep(chunks), parts.clock);
    }
    const mayBringFile = caller.holder.kind === "own" || (isTrusted && takesFile(method));
    const maxBytes = mayBringFile ? MAX_BODY_BYTES : MAX_FORM_BYTES;
    return { input: await readInput(request, fields, { clock: parts.clock, maxBytes, hold }), upload: undefined };
  };

  const methodOf = (name: string) => {
    const found = byName.get(name);
    if (found === undefined) throw new ApiError(API_CODES.unknownMethod, `unknown method: ${shortened(name)}`);
    return found;
  };

  const call = async (
    request: Request,
    caller: RequestCaller,
    { input, upload }: Received,
  ): Promise<[Method, unknown]> => {
    const name = input.texts("method")[0] ?? "";
    if (name === "") throw new ApiError(API_CODES.missingParameter, "missing parameter: method");
    const { method, read } = methodOf(name);
    const version = input.texts("api_version")[0] ?? "";
    if (version !== "" && !API_VERSIONS.has(version)) {
      throw new ApiError(API_CODES.unsupportedApiVersion, "unsupported api_version: 1, 2 and 3 are served");
    }
    const token = input.texts("token")[0] ?? "";
    await access.require(method, { request, caller, token });
    const result = await method.handle(read(input), {
      parts,
      addressClass: caller.addressClass,
      clientHost: caller.clientHost,
      ownUrl: caller.ownUrl,
      callerIsLocal: caller.isLocal,
      mayReadFiles: caller.mayReadFiles,
      isUser: () => isUser(caller, parts, token),
      mayFetchPrivate: caller.isLocal || parts.allowPrivateFetch,
      holder: caller.holder,
      upload,
      signal: AbortSignal.any([request.signal, parts.closing]),
    });
    return [method, result];
  };

  /** `response`, for pages that the user allows to read it. */
  const readable = (response: Response, caller: RequestCaller): Response => {
    const { origin } = caller.page;
    if (origin !== null && parts.policy.allowsOrigin(origin)) allowReading(response.headers, origin);
    return response;
  };

  return async (request, caller, named) => {
    let name = "";
    let received: Received | null = null;
    let leave: Leave | null = null;
    const hold = admission.body(caller.holder);
    try {
      leave = admission.enter(caller.holder);
      received = await receive(request, caller, hold, named);
      name = shortened(received.input.texts("method")[0] ?? "");
      const [method, result] = await call(request, caller, received);
      parts.metrics.calls.add({ method: method.name, result: "ok" });
      return readable(await success(method, result), caller);
    } catch (error) {
      await received?.upload?.remove();
      const isTurnedAway = received === null && hasCode(error, "too_busy");
      const told = isTurnedAway
        ? new ApiError(API_CODES.unavailable, error.message, 429, RETRY_AFTER_S)
        : toApiError(error);
      const isFault = told.code === API_CODES.internal;
      // Only names of the registry, because a caller may send any.
      parts.metrics.calls.add({ method: byName.has(name) ? name : "unknown", result: `error_${told.code}` });
      parts.log.log(isFault ? "error" : "debug", "an API call failed", {
        request: caller.requestId,
        method: name,
        code: told.code,
        error: isFault ? error : told.message,
      });
      // Only the engine's own pages may read anything about the token, refusals included.
      return told.code === API_CODES.accessDenied ? failure(told) : readable(failure(told), caller);
    } finally {
      hold.release();
      leave?.();
    }
  };
}

/** Whether a file may come with a call of `method`. */
function takesFile(method: Method): boolean {
  const schema = z.toJSONSchema(method.params, { io: "input" }) as { properties?: Record<string, { format?: string }> };
  return Object.values(schema.properties ?? {}).some(({ format }) => format === "binary");
}

/** The failure envelope as a response. */
export function failure(error: ApiError): Response {
  const response = answer(JSON.stringify(failureEnvelope(error)), error.status, false);
  if (error.retryAfterS !== null) response.headers.set("retry-after", String(error.retryAfterS));
  return response;
}

async function success(method: Method, result: unknown): Promise<Response> {
  if (result instanceof Picture) return picture(result);
  const body = result instanceof JsonStream ? await result.wrapped('{"result":', ',"error":null}') : JSON.stringify(
    result instanceof Noted ? { result: result.result, error: null, ...result.notes } : { result, error: null },
  );
  return answer(body, 200, method.openToPages === true);
}

function picture({ bytes, type }: Picture): Response {
  return new Response(bytes as Uint8Array<ArrayBuffer>, {
    headers: {
      "content-type": type,
      "cache-control": `private, max-age=${KEEP_MS / 1000}`,
      "x-content-type-options": "nosniff",
      "cross-origin-resource-policy": "same-origin",
      // In case an SVG is opened as a page: no scripts, and nothing from elsewhere.
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
