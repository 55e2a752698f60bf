/** The way that connections of the engine take. */

/** A server that connects to others on behalf of its clients. */
export interface ProxyServer {
  /** SOCKS5 (RFC 1928), or CONNECT of HTTP (RFC 9110, section 9.3.6). */
  readonly kind: "socks5" | "http";
  /** A name, or a literal address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly credentials: { readonly user: string; readonly password: string } | null;
}

/** How a request goes. */
export interface Route {
  /** Connects through this server. What the request names may then be a name, which that server looks up. */
  readonly proxy?: ProxyServer;
  /** Literal address of this machine to connect from. Default: the system's choice. */
  readonly localAddress?: string;
}

/** Whose lookup of a name it is, and until when it is wanted. */
export interface ResolveOptions {
  readonly signal: AbortSignal;
  /** The torrent that names the host. */
  readonly holder?: string;
  /**
   * Literal addresses of this machine to ask from, at most one of each family: then the system's own resolver is not asked, for
   * it asks from wherever it likes. Where a runtime has no such choice, the system chooses the way to the servers.
   */
  readonly localAddresses?: readonly string[];
}
