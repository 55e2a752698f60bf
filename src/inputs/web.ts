/** HTTP for sources. The user may name any address; that address may not lead further into private networks. */
import { type FetchPorts, guardedOpen, type OpenedUrl, requireSuccess } from "../content/fetch-guard.ts";
import { parseHttpUrl } from "../content/guarded-target.ts";
import { SILENT_AFTER_MS } from "./retry.ts";

/** Deadline for the head of a response, redirects included, ms. */
export const ANSWER_TIMEOUT_MS = 10_000;

/** What holds for all addresses of a source. */
export interface WebRules {
  /** Whether any of them may be private. Default true. */
  readonly allowPrivate?: boolean;
  /** Fields to send to an address. Default none. */
  readonly headersFor?: (url: string) => Readonly<Record<string, string>>;
}

/**
 * Opens addresses for one source. A public source leads to public addresses alone: a playlist or a redirect must not
 * make the broadcaster publish content of its own network.
 */
export class SourceWeb {
  readonly #ports: FetchPorts;
  readonly #root: string;
  readonly #rules: WebRules;
  #isPublic = false;

  /** `root`: the address that the user named. */
  constructor(ports: FetchPorts, root: string, rules: WebRules = {}) {
    this.#ports = ports;
    this.#root = parseHttpUrl(root).href;
    this.#rules = rules;
  }

  /** Opens `url`; rejects as `guardedOpen`, and for every status but 2xx. */
  async open(
    url: string,
    options: { readonly headers?: Record<string, string>; readonly maxBytes?: number; readonly idleMs?: number },
    signal: AbortSignal,
  ): Promise<OpenedUrl> {
    const isRoot = URL.canParse(url) && new URL(url).href === this.#root;
    const { allowPrivate = true, headersFor = () => ({}) } = this.#rules;
    const opened = await guardedOpen(this.#ports, url, {
      timeoutMs: ANSWER_TIMEOUT_MS,
      idleMs: SILENT_AFTER_MS,
      allowPrivate: allowPrivate && (isRoot || !this.#isPublic),
      ...options,
      headers: { ...headersFor(url), ...options.headers },
    }, signal);
    this.#isPublic ||= opened.isPublic;
    await requireSuccess(opened);
    return opened;
  }
}
