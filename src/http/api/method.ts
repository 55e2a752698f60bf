/** What a method of the JSON API is. Parsing, access rules, OpenAPI and the conformance test come from these fields. */
import type * as z from "zod";
import type { ShareHolder } from "../../bytes/shares.ts";
import type { Spooled } from "../../playlist/spool.ts";
import type { AddressClass } from "../address.ts";
import type { JsonStream } from "./json-stream.ts";
import type { Noted } from "./noted.ts";
import type { ApiParts } from "./parts.ts";

/** Facts about one call, and those of the engine's parts that its group of methods names. */
export interface ApiCall<Part extends keyof ApiParts = never> {
  readonly parts: Pick<ApiParts, Part>;
  readonly addressClass: AddressClass;
  /** The caller's own address. */
  readonly clientHost: string;
  /** Base URL of the engine as this request names it. */
  readonly ownUrl: string;
  /**
   * The call comes from this machine and not from a page of another origin, so that it may name private addresses: such a
   * page would otherwise borrow the user's place in the network.
   */
  readonly callerIsLocal: boolean;
  /** As in `RequestCaller`. */
  readonly mayReadFiles: boolean;
  /** Whether the caller is the user: on this machine, or with the token, and no page of another origin. */
  readonly isUser: () => Promise<boolean>;
  /** Whether it may name private addresses: it is local, or the user lets everybody. */
  readonly mayFetchPrivate: boolean;
  /** The caller whose share of sessions the call uses. */
  readonly holder: ShareHolder;
  /** The file named by `Method.upload` when it came as a stream; the handler releases it. */
  readonly upload?: Spooled | undefined;
  /** The caller gave up. */
  readonly signal: AbortSignal;
}

/** What a handler may return. */
export type Handled<Result extends z.ZodType> = z.input<Result> | JsonStream | Noted<z.input<Result>>;

/** One method. Its handler sees the parts `Part` of the engine alone. */
export interface Method<
  Params extends z.ZodObject = z.ZodObject,
  Result extends z.ZodType = z.ZodType,
  Part extends keyof ApiParts = keyof ApiParts,
> {
  readonly name: string;
  /** One sentence for the documentation. */
  readonly summary: string;
  /** Needs no token. */
  readonly public: boolean;
  /**
   * A private method that programs on this machine and in its subnet call without the token. Pages of other origins may not,
   * and neither may callers of whom only a proxy that says nothing is known. Default false.
   */
  readonly openNearby?: boolean;
  /** False: callers on this machine only, whatever is allowed. */
  readonly remote: boolean;
  /** Pages of any origin may read the result. Only where it reveals nothing about the user. Default false. */
  readonly openToPages?: boolean;
  /** Refuses anything a browser sends on behalf of another origin. Private methods always do. Default false. */
  readonly sameOriginOnly?: boolean;
  /**
   * Refuses a browser that does not say which page sends a request, as with a GET to an address of the local network: it may
   * be any page. Default false.
   */
  readonly needsNamedPage?: boolean;
  /**
   * The file parameter that may be larger than a body otherwise is: with method and token in the query it is received as a
   * stream and kept aside as `ApiCall.upload`. Default: none.
   */
  readonly upload?: string;
  /** Names a parameter that it does not know, instead of ignoring it. Default false. */
  readonly refusesUnknown?: boolean;
  /** Parameters as typed values; `readParams` makes those from text by the same schema. */
  readonly params: Params;
  readonly result: Result;
  /** Extra fields that may stand beside the result (`Noted`). Default: none. */
  readonly notes?: z.ZodObject;
  /** Large results may be a stream of their JSON, others have notes beside them. */
  handle(params: z.output<Params>, call: ApiCall<Part>): Handled<Result> | Promise<Handled<Result>>;
}

/**
 * Makes `defineMethod` for a group of methods that works with the parts `Part` of the engine and no other. `defineMethod`
 * gives `handle` the types of its schemas, then forgets them so that methods fit into one list.
 *
 * @example
 * ```ts
 * const defineMethod = methodsWith<"playlist" | "clock">();
 * ```
 */
export function methodsWith<Part extends keyof ApiParts>() {
  return <Params extends z.ZodObject, Result extends z.ZodType>(method: Method<Params, Result, Part>): Method =>
    method as unknown as Method;
}
