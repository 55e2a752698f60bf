/** Kodi's JSON-RPC over HTTP (its API, versions 6 to 13), on the web server that its user turned on. */
import { basicAuthorization } from "../../bytes/basic-authorization.ts";
import { MillraceError } from "../../errors.ts";
import { askDevice } from "../../upnp/http.ts";

/** Port of Kodi's web server unless its user chose another. */
const DEFAULT_PORT = 8080;
/** Longest error text of Kodi that is shown, characters. */
const MAX_REASON_CHARS = 200;

/** Address and credentials of a Kodi. */
export interface KodiAddress {
  /** Name or literal address, IPv6 in brackets. */
  readonly hostname: string;
  readonly port: number;
  /** Value of `Authorization`; null when Kodi needs none. */
  readonly authorization: string | null;
}

/** Reads `[user:password@]host[:port]`, user and password percent-encoded where needed. Throws `config`, without the password. */
export function readKodiAddress(text: string): KodiAddress {
  try {
    const url = new URL(/[/?#\\]/.test(text) ? "" : `http://${text}`);
    const [user, password] = [url.username, url.password].map(decodeURIComponent);
    return {
      hostname: url.hostname,
      // `URL` drops port 80 as the default, but here the default is another.
      port: url.port === "" ? (/:80$/.test(text) ? 80 : DEFAULT_PORT) : Number(url.port),
      authorization: user || password ? basicAuthorization(user!, password!) : null,
    };
  } catch {
    throw new MillraceError(
      "config",
      "kodi: [user:password@]host[:port] is expected, such as kodi:secret@192.168.1.20",
    );
  }
}

/** Calls to one Kodi. */
export class KodiRpc {
  readonly #fetch: typeof fetch;
  readonly #url: URL;
  readonly #headers: Record<string, string>;

  constructor(fetcher: typeof fetch, { hostname, port, authorization }: KodiAddress) {
    this.#fetch = fetcher;
    this.#url = new URL(`http://${hostname}:${port}/jsonrpc`);
    this.#headers = { "content-type": "application/json", ...authorization === null ? {} : { authorization } };
  }

  /**
   * Calls `method` and returns its result.
   *
   * @throws `connection_failed`, `too_large`, or the signal's reason: as `askDevice`; with `unavailable` and Kodi's
   * message when it refuses or needs another user or password, and with `protocol_violation` for anything but JSON-RPC
   */
  async call(method: string, params: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<unknown> {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const { status, text } = await askDevice(
      this.#fetch,
      this.#url,
      { method: "POST", headers: this.#headers, body },
      signal,
    );
    if (status === 401) {
      throw new MillraceError("unavailable", `Kodi at ${this.#url.host} needs another user or password: see --kodi`);
    }
    const reply = status === 200 ? parse(text) : null;
    if (reply?.["error"] !== undefined) {
      const { message } = (reply["error"] ?? {}) as { message?: unknown };
      throw new MillraceError("unavailable", `Kodi refuses: ${String(message).slice(0, MAX_REASON_CHARS)}`);
    }
    if (reply?.["result"] === undefined) {
      throw new MillraceError("protocol_violation", `what is at ${this.#url.host} is no Kodi (status ${status})`);
    }
    return reply["result"];
  }
}

function parse(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value as Record<string, unknown> : null;
  } catch {
    return null;
  }
}
