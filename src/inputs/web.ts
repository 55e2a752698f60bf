/** HTTP for sources. The user may name any address; that address may not lead further into private networks. */
import { type FetchPorts, guardedOpen, type OpenedUrl, requireSuccess } from "../content/fetch-guard.ts";
import { checkedAddresses, nearness, parseHttpUrl } from "../content/guarded-target.ts";
import { SILENT_AFTER_MS } from "./retry.ts";

/** Deadline for the head of a response, redirects included, ms. */
export const ANSWER_TIMEOUT_MS = 10_000;

/**
 * Opens addresses for one source. A public source leads to public addresses alone: a playlist or a redirect must not
 * make the broadcaster publish content of its own network.
 */
export class SourceWeb {
  readonly #ports: FetchPorts;
  readonly #root: URL;
  #allowPrivate: boolean | null = null;

  /** `root`: the address that the user named. */
  constructor(ports: FetchPorts, root: string) {
    this.#ports = ports;
    this.#root = parseHttpUrl(root);
  }

  /** Opens `url`; rejects as `guardedOpen`, and for every status but 2xx. */
  async open(
    url: string,
    options: { readonly headers?: Record<string, string>; readonly maxBytes?: number },
    signal: AbortSignal,
  ): Promise<OpenedUrl> {
    this.#allowPrivate ??= (await checkedAddresses(this.#ports, this.#root, true, signal))
      .some((address) => nearness(this.#ports, address) !== "public");
    const limits = { timeoutMs: ANSWER_TIMEOUT_MS, idleMs: SILENT_AFTER_MS, allowPrivate: this.#allowPrivate };
    const opened = await guardedOpen(this.#ports, url, { ...limits, ...options }, signal);
    await requireSuccess(opened);
    return opened;
  }
}
