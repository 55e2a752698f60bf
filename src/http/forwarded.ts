/** Fields that proxies add to requests, to name the caller. */

/** Each of these fields shows that a proxy passed the request on. So do fields that begin with `x-forwarded`. */
const PROXY_FIELDS: ReadonlySet<string> = new Set([
  "forwarded",
  "forwarded-for",
  "via",
  "x-real-ip",
  "x-client-ip",
  "x-cluster-client-ip",
  "x-original-forwarded-for",
  "x-originating-ip",
  "x-remote-ip",
  "x-remote-addr",
  "x-proxyuser-ip",
  "x-envoy-external-address",
  "x-azure-clientip",
  "x-appengine-user-ip",
  "cf-connecting-ip",
  "cf-connecting-ipv6",
  "cf-ray",
  "true-client-ip",
  "fastly-client-ip",
  "fly-client-ip",
  "client-ip",
  "cdn-loop",
]);

/** Longest field that is read, characters: a hop takes some 50, and nobody uses 80 proxies. */
const MAX_FIELD_CHARS = 4096;

/** Hops of a chain that are examined, the nearest ones. */
const MAX_HOPS = 16;

/** Longest name of a hop that is kept, characters; an address is shorter. */
const MAX_HOP_CHARS = 64;

/** Stands for a hop that cannot be read. It is not an address, so its caller counts as from the Internet. */
const UNREADABLE = "unknown";

/** Whether a proxy says that it passed the request on. */
export function isForwarded(headers: Headers): boolean {
  for (const [name] of headers) if (name.startsWith("x-forwarded") || PROXY_FIELDS.has(name)) return true;
  return false;
}

/**
 * The chains of hops that `X-Forwarded-For`, `Forwarded` and `X-Real-IP` name: one for each of these fields that is
 * present, in this order. The nearest hop comes last. A chain has at least one hop, which is no address when nothing
 * can be read.
 */
export function forwardedChains(headers: Headers): readonly (readonly string[])[] {
  const chains: (readonly string[])[] = [];
  const listed = headers.get("x-forwarded-for");
  if (listed !== null) chains.push(listed.slice(-MAX_FIELD_CHARS).split(",").slice(-MAX_HOPS).map(hopName));
  const forwarded = headers.get("forwarded");
  if (forwarded !== null) {
    const elements = parseForwarded(forwarded);
    chains.push(
      elements === null || elements.length === 0
        ? [UNREADABLE]
        : elements.slice(-MAX_HOPS).map((element) => hopName(element.get("for") ?? UNREADABLE)),
    );
  }
  const real = headers.get("x-real-ip");
  if (real !== null) chains.push([hopName(real)]);
  return chains;
}

/** `host`, `host:port` or `[host]:port` without the port. */
function hopName(hop: string): string {
  const match = /^(?:\[([^\]]*)\]|([^:]*))(?::\d{1,5})?$/.exec(hop.trim());
  return (match?.[1] ?? match?.[2] ?? hop.trim()).slice(0, MAX_HOP_CHARS);
}

/**
 * The elements of a `Forwarded` field (RFC 7239 section 4), the nearest proxy's last, each as its parameters by lower-case
 * name; null when it is malformed or too long.
 */
export function parseForwarded(field: string): readonly ReadonlyMap<string, string>[] | null {
  if (field.length > MAX_FIELD_CHARS) return null;
  const elements: Map<string, string>[] = [];
  let element = new Map<string, string>();
  // One pair with its end mark, or an empty place in the list (RFC 9110 section 5.6.1).
  const pair = /[ \t]*(?:([!#$%&'*+.^_`|~\w-]+)=(?:([!#$%&'*+.^_`|~\w-]+)|"((?:[^"\\]|\\.)*)")[ \t]*)?([;,]|$)/y;
  while (pair.lastIndex < field.length) {
    const match = pair.exec(field);
    if (match === null) return null;
    const [, name, token, quoted, end] = match;
    if (name !== undefined) {
      const key = name.toLowerCase();
      // A parameter that appears twice in one element is malformed: one of the two is not from the proxy.
      if (element.has(key)) return null;
      element.set(key, token ?? quoted!.replaceAll(/\\(.)/g, "$1"));
    }
    if (end !== ";" && element.size > 0) {
      elements.push(element);
      element = new Map();
    }
    if (end === "") break;
  }
  if (element.size > 0) elements.push(element);
  return elements;
}
