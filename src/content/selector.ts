/** How a request names its stream: section 4.1 of the HTTP API. */
import { MillraceError } from "../errors.ts";

/** One of the four selectors, or a transport file sent along. */
export type StreamSelector =
  | { readonly kind: "content_id"; readonly contentId: string }
  | { readonly kind: "infohash"; readonly infohash: string }
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "magnet"; readonly magnet: string }
  | { readonly kind: "transport_file"; readonly bytes: Uint8Array };

const HEX_40 = /^[0-9a-fA-F]{40}$/;

/** Values in the form of a query; absent ones are undefined. */
export interface SelectorValues {
  readonly content_id?: string | undefined;
  readonly infohash?: string | undefined;
  readonly url?: string | undefined;
  readonly magnet?: string | undefined;
}

/**
 * The first selector present, in the order `content_id`, `infohash`, `url`, `magnet`; it wins even when malformed and a
 * later one is fine. An empty value counts as absent. Throws `missing_selector` or `invalid_argument`.
 */
export function selectStream(values: SelectorValues): StreamSelector {
  if (values.content_id) {
    return { kind: "content_id", contentId: hex40("content_id", values.content_id) };
  }
  if (values.infohash) return { kind: "infohash", infohash: hex40("infohash", values.infohash) };
  if (values.url) return { kind: "url", url: values.url };
  if (values.magnet) return { kind: "magnet", magnet: values.magnet };
  throw new MillraceError("missing_selector", "missing stream selector");
}

function hex40(name: string, value: string): string {
  const text = value.trim();
  if (!HEX_40.test(text)) {
    throw new MillraceError("invalid_argument", `invalid ${name}: 40 hexadecimal characters are expected`);
  }
  return text.toLowerCase();
}
