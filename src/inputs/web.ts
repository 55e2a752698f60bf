/** HTTP for sources. The user may name any address; that address may not lead further into private networks. */
import { type FetchPorts, guardedOpen, type OpenedUrl, requireSuccess } from "../content/fetch-guard.ts";
import { parseHttpUrl } from "../content/guarded-target.ts";
import { SILENT_AFTER_MS } from "./retry.ts";

/** Deadline for the head of a response, redirects included, ms. */
export const ANSWER_TIMEOUT_MS = 10_000;

/**
 * Opens addresses for one source. A public source leads to public addresses alone: a playlist or a redirect must not
 * make the broadcaster publish content of its own network.
 */
export class SourceWeb {
  readonly #ports: FetchPorts;
  readonly #root: string;
  #isPublic = false;

  /** `root`: the address that the user named. */
  constructor(ports: FetchPorts, root: string) {
    this.#ports = ports;
    this.#root = parseHttpUrl(root).href;
  }

  /** Opens `url`; rejects as `guardedOpen`, and for every status but 2xx. */
  async open(
    url: string,
    options: { readonly headers?: Record<string, string>; readonly maxBytes?: number },
    signal: AbortSignal,
  ): Promise<OpenedUrl> {
    const isRoot = URL.canParse(url) && new URL(url).href === this.#root;
    const limits = { timeoutMs: ANSWER_TIMEOUT_MS, idleMs: SILENT_AFTER_MS, allowPrivate: isRoot || !this.#isPublic };
    const opened = await guardedOpen(this.#ports, url, { ...limits, ...options }, signal);
    this.#isPublic ||= opened.isPublic;
    await requireSuccess(opened);
    return opened;
  }
}
