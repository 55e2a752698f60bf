/**
 * Marks the engine's own requests, so that it recognises them when they come back to it: by an address of its own,
 * through a router or through a reverse proxy. Without the mark a stranger could name such an address and count as this
 * machine.
 */
import { fromHex, toHex } from "../bytes/hex.ts";
import type { Ports } from "../ports.ts";

/** The field that carries the mark. Proxies pass on fields that they do not know. */
const FIELD = "millrace-request";

/** Random bytes of a mark: no two are equal, so that servers cannot link two requests of one sender. */
const NONCE_BYTES = 16;

/** Bytes of the key: as many as the hash has. */
const KEY_BYTES = 32;

/** A random number and its HMAC-SHA-256 (RFC 2104). */
const MARK = /^([0-9a-f]{32})\.([0-9a-f]{64})$/;

const HMAC = { name: "HMAC", hash: "SHA-256" } as const;

/** Makes and recognises the marks of one engine, with a key that never leaves it. */
export class OwnRequests {
  readonly #key: Promise<CryptoKey>;

  constructor() {
    const secret = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
    this.#key = crypto.subtle.importKey("raw", secret, HMAC, false, ["sign", "verify"]);
  }

  /** Whether a request with these fields was sent by this engine. */
  async isOwn(headers: Headers): Promise<boolean> {
    const [, nonce, signature] = MARK.exec(headers.get(FIELD) ?? "") ?? [];
    if (nonce === undefined || signature === undefined) return false;
    return await crypto.subtle.verify(HMAC.name, await this.#key, bytes(signature), bytes(nonce));
  }

  /** `ports` whose requests carry a mark each. */
  marked<P extends Pick<Ports, "fetch" | "httpClient">>(ports: P): P {
    // Called without a receiver, as the platform's own wants it.
    const { fetch, httpClient } = ports;
    return {
      ...ports,
      fetch: async (input: Parameters<typeof fetch>[0], init: RequestInit = {}) => {
        const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined));
        return await fetch(input, { ...init, headers: await this.#mark(headers) });
      },
      httpClient: {
        ...httpClient,
        open: async (request) =>
          await httpClient.open({ ...request, headers: await this.#mark(new Headers(request.headers)) }),
      },
    };
  }

  async #mark(headers: Headers): Promise<Headers> {
    const nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
    const signature = await crypto.subtle.sign(HMAC.name, await this.#key, nonce);
    headers.set(FIELD, `${toHex(nonce)}.${toHex(new Uint8Array(signature))}`);
    return headers;
  }
}

function bytes(hex: string): Uint8Array<ArrayBuffer> {
  return fromHex(hex) as Uint8Array<ArrayBuffer>;
}
