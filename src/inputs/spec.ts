/** The value of `--source`. */
import { upTo } from "../bytes/trim.ts";
import ipaddr from "ipaddr.js";
import { MillraceError } from "../errors.ts";

/** A source by the way in which it is read. */
export type SourceSpec =
  /** Standard input. */
  | { readonly kind: "stdin" }
  /** A file; `path` as given. */
  | { readonly kind: "file"; readonly path: string }
  /** A transport stream, an HLS playlist, or a stream that ffmpeg converts: the response shows which. */
  | { readonly kind: "http"; readonly url: string }
  /** Datagrams. */
  | DatagramSpec
  /** A source that only ffmpeg reads, or that the user gives to it: `ffmpeg:ADDRESS`. */
  | { readonly kind: "ffmpeg"; readonly url: string };

/** Where datagrams arrive. */
export interface DatagramSpec {
  readonly kind: "udp" | "rtp";
  /** Multicast group, or the address of this machine to listen on. */
  readonly host: string;
  readonly port: number;
  readonly isMulticast: boolean;
  /** Address of the interface to join the group on; null: the system's choice. */
  readonly interfaceAddress: string | null;
}

/** Longest source that is read, characters. */
const MAX_SOURCE_CHARS = 4096;

/** Reads a source. Throws `config` with a line that says what is wrong. */
export function parseSource(text: string): SourceSpec {
  const source = text.trim();
  if (source === "" || source.length > MAX_SOURCE_CHARS) {
    throw fault("needs an address, a file or - for standard input");
  }
  if (source === "-") return { kind: "stdin" };
  if (source.startsWith("ffmpeg:")) return { kind: "ffmpeg", url: source.slice("ffmpeg:".length) };
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(source)?.[1]?.toLowerCase();
  if (scheme === undefined) return { kind: "file", path: source };
  switch (scheme) {
    case "file":
      return { kind: "file", path: filePath(source) };
    case "udp":
    case "rtp":
      return datagrams(scheme, source);
    case "http":
    case "https":
      if (!URL.canParse(source)) throw fault(`is no valid ${scheme} address`);
      return { kind: "http", url: source };
    default:
      return { kind: "ffmpeg", url: source };
  }
}

/** A source as logs and messages may show it: without user name, password, query and fragment, which hold keys. */
export function describeSource(spec: SourceSpec): string {
  switch (spec.kind) {
    case "stdin":
      return "standard input";
    case "file":
      return spec.path;
    case "udp":
    case "rtp":
      return `${spec.kind}://${spec.host.includes(":") ? `[${spec.host}]` : spec.host}:${spec.port}`;
    default:
      return describeUrl(spec.url);
  }
}

/** Whether somebody has to send to this source before it delivers anything: nothing is fetched from it. */
export function isAwaited(spec: SourceSpec): boolean {
  if (spec.kind === "udp" || spec.kind === "rtp") return true;
  return spec.kind === "ffmpeg" && listens(spec.url) !== null;
}

/** By which protocol senders connect to us at `url`; null: we connect to it. */
export function listens(url: string): "rtmp" | "rtsp" | "srt" | null {
  const [, query = ""] = url.split("?");
  if (/^srt:/i.test(url)) {
    return (new URLSearchParams(query).get("mode") ?? (/^srt:\/\/:/i.test(url) ? "listener" : "")) === "listener"
      ? "srt"
      : null;
  }
  if (query !== "listen=1") return null;
  return /^rtmps?:/i.test(url) ? "rtmp" : /^rtsp:/i.test(url) ? "rtsp" : null;
}

/** An address as logs may show it. */
export function describeUrl(url: string): string {
  return upTo(upTo(url, "?"), "#").replace(/^([^:/]+:\/\/)[^/]*@/, "$1");
}

/** `url` without the parts that logs must not show, for an error message. */
export function withoutSecrets(message: string, url: string): string {
  return message.replaceAll(url, describeUrl(url)).replaceAll(/\/\/[^/\s@:]*:[^/\s@]*@/g, "//");
}

function fault(what: string): MillraceError {
  return new MillraceError("config", `--source ${what}`);
}

function filePath(source: string): string {
  if (!URL.canParse(source)) throw fault("is no valid file address");
  const { hostname, pathname } = new URL(source);
  if (hostname !== "" && hostname !== "localhost") throw fault("names a file on another machine; mount it");
  try {
    // file:///C:/x names C:/x.
    return decodeURIComponent(pathname).replace(/^\/(?=[A-Za-z]:\/)/, "");
  } catch {
    throw fault("is no valid file address");
  }
}

/** `udp://[@]group:port[?localaddr=address]`: the `@` and the parameter's name are VLC's and ffmpeg's habits. */
function datagrams(kind: "udp" | "rtp", source: string): DatagramSpec {
  const match = /^[a-z]+:\/\/(?:[^@/?#]*@)?(\[[^\]]*\]|[^:/?#]*):(\d{1,5})\/?(?:\?([^#]*))?$/i.exec(source);
  const port = Number(match?.[2]);
  if (match === null || port < 1 || port > 65535) throw fault(`needs ${kind}://address:port`);
  const host = match[1]!.replace(/^\[|\]$/g, "") || "0.0.0.0";
  if (host !== "localhost" && !ipaddr.isValid(host)) {
    throw fault(`needs a literal address in ${kind}://address:port, the one to listen on`);
  }
  const local = new URLSearchParams(match[3] ?? "").get("localaddr");
  if (local !== null && !ipaddr.isValid(local)) throw fault("needs a literal address in localaddr");
  const isMulticast = ipaddr.isValid(host) && ipaddr.parse(host).range() === "multicast";
  return { kind, host: host === "localhost" ? "127.0.0.1" : host, port, isMulticast, interfaceAddress: local };
}
