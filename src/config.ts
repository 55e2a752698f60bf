/**
 * The command line's options: one table that defines flags, variables, keys of the configuration file, `--help` and
 * the README. Adding an option means adding one line to `OPTIONS`; its field appears in `Config` automatically.
 */
import { type Command, COMMANDS, USAGE } from "./config/commands.ts";
import { type OptionFacts, optionFacts, optionLines, optionMarkdown } from "./config/help.ts";
import {
  type Option,
  readOptions,
  splitArguments,
  unknownVariables,
  type Values,
  type ValueSources,
  variableName,
} from "./config/parse.ts";
import { FRONT_NAMES } from "./config/front-names.ts";
import * as value from "./config/values.ts";
import { MillraceError } from "./errors.ts";
import { VERSION } from "./version.ts";

export type { Command } from "./config/commands.ts";

const MIB = 2 ** 20;
const GIB = 2 ** 30;

/** Default of `--cache-limit`, bytes: a few films on disk, one film's window in memory. */
const CACHE_LIMIT_BYTES = { disk: 10 * GIB, ram: 512 * MIB } as const;

function option<T>(
  flag: string,
  kind: value.ValueKind<T>,
  initial: NoInfer<T>,
  help: string,
  more: Pick<Option<T>, "shownDefault" | "hidden" | "flagOnly"> = {},
): Option<T> {
  return { flag, kind, initial, help, ...more };
}

const FLAG_ONLY = { flagOnly: true } as const;

/** All options with their defaults, in the order of `--help`. Field names carry their units. */
const OPTIONS = {
  httpHost: option("http-host", value.host, "127.0.0.1", "Address for HTTP clients"),
  httpPort: option("http-port", value.port, 6878, "Port for HTTP clients; 0 picks a free one"),
  bindAll: option("bind-all", value.boolean, false, "Listen for HTTP clients on every interface"),
  allowedHosts: option(
    "allowed-host",
    value.list(value.host),
    [],
    "Additional host name that clients may use; repeatable",
  ),
  allowOrigins: option(
    "allow-origin",
    value.list(value.origin),
    [],
    "Origin of web pages that may play and use the API's public methods, such as https://tv.example; repeatable",
  ),
  publicUrl: option(
    "public-url",
    value.optional(value.url("http", "https")),
    null,
    "Base of all URLs in responses, behind a reverse proxy",
  ),
  trustProxy: option(
    "trust-proxy",
    value.list(value.text("ADDRESS")),
    [],
    "Reverse proxy whose X-Forwarded-*, Forwarded and X-Real-IP are trusted: address or CIDR range; repeatable",
  ),
  pathAliases: option(
    "path-alias",
    value.list(value.pathName),
    [],
    "Also serve everything of /engine under /NAME; repeatable",
  ),
  peerHost: option(
    "peer-host",
    value.optional(value.host),
    null,
    "Address for peers; :: takes them over IPv4 and IPv6, 0.0.0.0 over IPv4 alone",
    { shownDefault: "::, or 0.0.0.0 without IPv6" },
  ),
  peerPort: option("peer-port", value.port, 8621, "Port for peers; 0 picks a free one"),
  stateDir: option("state-dir", value.optional(value.text("DIR")), null, "Directory for data kept across restarts", {
    shownDefault: "in the user's data directory",
  }),
  cacheDir: option("cache-dir", value.optional(value.text("DIR")), null, "Directory for downloaded pieces", {
    shownDefault: "in the user's cache directory",
  }),
  cache: option("cache", value.choice("disk", "ram"), "disk", "Where downloaded pieces are kept"),
  cacheLimitBytes: option(
    "cache-limit",
    value.optional(value.size),
    null,
    "Space for downloaded pieces; 0 is no limit",
    { shownDefault: "10GiB on disk, 512MiB in RAM" },
  ),
  downloadLimitBytesPerSecond: option("download-limit", value.rate, 0, "Download no faster than this; 0 is no limit"),
  uploadLimitBytesPerSecond: option("upload-limit", value.rate, 0, "Upload no faster than this; 0 is no limit"),
  maxPeers: option("max-peers", value.integer(1, 10_000), 200, "Peers connected at once, over all streams"),
  trackers: option(
    "tracker",
    value.list(value.url("http", "https", "udp")),
    [],
    "Tracker asked for every public stream; repeatable",
  ),
  dhtBootstrap: option(
    "dht-bootstrap",
    value.list(value.hostPort),
    [],
    "DHT node to contact first instead of the well-known ones; repeatable",
  ),
  dht: option("no-dht", value.negated, true, "Do not use the DHT"),
  lsd: option("no-lsd", value.negated, true, "Do not look for peers in the local network"),
  pex: option("no-pex", value.negated, true, "Do not exchange addresses with peers"),
  utp: option("no-utp", value.negated, true, "Connect to peers of torrents by TCP alone, not over UDP (uTP)"),
  webrtc: option(
    "no-webrtc",
    value.negated,
    true,
    "Ask no trackers of web browsers (ws, wss), and connect to none by WebRTC",
  ),
  interface: option(
    "interface",
    value.optional(value.host),
    null,
    "Name or address of the interface from which everything is sent; while it is away nothing is",
  ),
  encryption: option(
    "encryption",
    value.choice("accept", "prefer", "require", "off"),
    "accept",
    "Encryption of peer connections (MSE): accept, in plaintext first and as the peer wants; prefer, encrypted first; require, encrypted alone; off, in plaintext alone",
  ),
  portMapping: option("no-port-mapping", value.negated, true, "Do not ask the router to let peers in"),
  proxy: option(
    "proxy",
    value.optional(value.proxy),
    null,
    "Proxy for all that goes out: socks5://[user:password@]host:port, or http:// for CONNECT; nothing is sent beside it",
  ),
  proxyFor: option(
    "proxy-for",
    value.choice("all", "peers"),
    "all",
    "What goes through the proxy: all, or peers, their trackers and web seeds alone; lists and transport files are then fetched directly",
  ),
  startTimeoutMs: option("start-timeout", value.duration, 60_000, "Deadline for the start of a stream"),
  liveWindowMs: option(
    "live-window",
    value.durationBetween(10_000, 7_200_000),
    60_000,
    "How far back players of a broadcast can go (with --cache disk, all beyond 90s is on disk); with broadcast: how far back its peers can go, too; part of the id",
  ),
  channelOrder: option("channel-order", value.channelOrder, "library", "Sources of a channel that are tried first"),
  recordingsLimitBytes: option(
    "recordings-limit",
    value.size,
    50 * GIB,
    "Space for recordings of broadcasts and channels, in the state directory; 0 is no limit",
  ),
  fronts: option(
    "front",
    value.list(value.withPort(...FRONT_NAMES)),
    [],
    "Also be a server that other programs know, with =PORT at a port of its own, too: hdhomerun, a tuner with the library's channels; dlna, a media server with the library; torrserver, for apps that know TorrServer; webdav, the library as a folder; xtream, for apps that know Xtream codes; stremio, an add-on for that app; stremio-server, the server that plays torrents for that app; torznab, an indexer of the library's torrents; qbittorrent, for programs that add torrents by its Web API; repeatable",
  ),
  frontPages: option(
    "front-pages",
    value.list(value.choice(...FRONT_NAMES)),
    [],
    "Front that web pages of every origin may use; repeatable",
  ),
  strmDir: option("strm-dir", value.optional(value.text("DIR")), null, "Folder to fill with .strm files of films"),
  strmUrl: option("strm-url", value.optional(value.url("http", "https")), null, "What addresses in them begin with"),
  playerPrograms: option(
    "player",
    value.list(value.text("PROGRAM")),
    [],
    "Player program on this machine, mpv, VLC or ffplay: a command or path; repeatable",
    { shownDefault: "all that are found" },
  ),
  kodis: option(
    "kodi",
    value.list(value.hostWithPassword),
    [],
    "Kodi that can play streams: [user:password@]host[:port] of its web server, port 8080 by default; repeatable",
  ),
  playerDiscovery: option("no-player-discovery", value.negated, true, "Do not look for players other than those named"),
  castPlayer: option(
    "cast-player",
    value.optional(value.text("ID")),
    null,
    "Id in get_available_players of the player for streams that other engines send",
    { shownDefault: "the first program" },
  ),
  allowCastFrom: option(
    "allow-cast-from",
    value.list(value.text("KEY")),
    [],
    "Key of another engine that may play its streams here without a question to the user; repeatable",
  ),
  cushion: option(
    "cushion",
    value.cushion,
    "auto",
    "How much of a film is waited for once its peers have proved slower than it: auto, so much that the rest plays without a stop, off, or a time of the film",
  ),
  transcodeAudio: option(
    "transcode-audio",
    value.choice("auto", "never", "always"),
    "auto",
    "Convert sound that MPEG TS cannot carry to AAC by default: auto if a file would be silent, or always",
  ),
  lowLatency: option("low-latency", value.boolean, false, "Make HLS of broadcasts as fragmented MP4 low-latency HLS"),
  audioTarget: option("audio-target", value.choice("aac", "ac3"), "aac", "Format that sound is converted to"),
  allowPrivateFetch: option(
    "allow-private-fetch",
    value.boolean,
    false,
    "Let remote clients name URLs on private addresses",
  ),
  accessToken: option("access-token", value.optional(value.text("TOKEN")), null, "Token of the JSON API", {
    shownDefault: "made at the first start, kept in the state directory",
  }),
  oidcIssuer: option(
    "oidc-issuer",
    value.optional(value.url("https", "http")),
    null,
    "OpenID Connect provider whose users can sign in",
  ),
  oidcAudience: option("oidc-audience", value.optional(value.text("ID")), null, "Client id at that provider"),
  databaseUrl: option(
    "database-url",
    value.optional(value.url("libsql", "https", "http", "wss", "ws")),
    null,
    "libSQL server for playlists and settings",
    { shownDefault: "a file in the state directory" },
  ),
  databaseToken: option("database-token", value.optional(value.text("TOKEN")), null, "Token for that server"),
  logLevel: option(
    "log-level",
    value.choice("error", "warn", "info", "debug"),
    "info",
    "Least severe level logged, to standard error",
  ),
  logFormat: option("log-format", value.choice("text", "json"), "text", "Format of the log and of the ready line"),
  source: option(
    "source",
    value.optional(value.text("SOURCE")),
    null,
    "With broadcast: a URL, a file, udp://address:port, rtp://address:port, or - for standard input",
  ),
  name: option(
    "name",
    value.optional(value.text("NAME")),
    null,
    "With broadcast: restarting with the same name keeps the id",
  ),
  title: option("title", value.optional(value.text("TEXT")), null, "With broadcast: what viewers see; part of the id", {
    shownDefault: "the name",
  }),
  bitrateBytesPerSecond: option(
    "bitrate",
    value.optional(value.rate),
    null,
    "With broadcast: announced bitrate; part of the id",
    { shownDefault: "measured at the first start" },
  ),
  pieceLengthBytes: option(
    "piecesize",
    value.optional(value.sizeInSteps(16 * 1024, MIB)),
    null,
    "With broadcast: largest piece; part of the id",
    { shownDefault: "about 0.2 s, 32KiB to 64KiB" },
  ),
  publishDir: option(
    "publish-dir",
    value.optional(value.text("DIR")),
    null,
    "With broadcast: directory for the transport file, the key and the position",
    { shownDefault: "broadcasts in the state directory" },
  ),
  private: option("private", value.boolean, false, "With broadcast: announce it only to trackers; part of the id"),
  url: option(
    "url",
    value.optional(value.text("STREAM")),
    null,
    "With relay: content id, magnet, or file or URL of a transport file",
  ),
  json: option(
    "json",
    value.boolean,
    false,
    "With broadcast, relay, doctor and verify: print one JSON object per line",
    FLAG_ONLY,
  ),
  live: option("live", value.boolean, false, "With demo: broadcast the clip in a loop, and play that", FLAG_ONLY),
  once: option(
    "once",
    value.boolean,
    false,
    "With demo: download both outputs, check them and exit; with broadcast: end when the source ends",
    FLAG_ONLY,
  ),
  config: option("config", value.optional(value.text("FILE")), null, "JSON file with any of these options as keys"),
  help: option("help", value.boolean, false, "Show this text", FLAG_ONLY),
  version: option("version", value.boolean, false, "Show the version", FLAG_ONLY),
  file: option("file", value.optional(value.text("FILE")), null, "With seed: the file or folder", {
    ...FLAG_ONLY,
    hidden: true,
  }),
  format: option("format", value.choice("v1", "hybrid", "v2"), "v1", "With seed: versions of BitTorrent", {
    ...FLAG_ONLY,
    hidden: true,
  }),
  transportFile: option(
    "transport-file",
    value.optional(value.text("FILE")),
    null,
    "With seed: where to write the transport file",
    { ...FLAG_ONLY, hidden: true },
  ),
};

/** The whole configuration. Directories are null when the platform chooses them. */
export type Config = Omit<Values<typeof OPTIONS>, "help" | "version" | "config" | "cacheLimitBytes"> & {
  readonly command: Command;
  /** The words after the command: a subcommand and its object. */
  readonly words: readonly string[];
  /** Bytes; 0 = no limit. */
  readonly cacheLimitBytes: number;
};

/** Path of the configuration file named on the command line or in the environment; null when there is none. */
export function configPath(sources: Pick<ValueSources, "args" | "env">): string | null {
  const given = splitArguments(OPTIONS, sources.args).values.get(OPTIONS.config.flag);
  return given?.[given.length - 1] ?? (sources.env[variableName(OPTIONS.config.flag)] || null);
}

/** One line for each variable of the environment that is named like an option and is none. */
export function misspeltVariables(env: ValueSources["env"]): string[] {
  return unknownVariables(OPTIONS, env);
}

/**
 * The configuration from the command line, then the environment, then the file. Throws a `MillraceError` with code
 * `config` and a one-line message.
 */
export function parseConfig(sources: ValueSources): Config {
  const args = splitArguments(OPTIONS, sources.args);
  const [word = "serve", ...words] = args.words;
  const { help, version, config: _config, ...values } = readOptions(OPTIONS, args, sources.env, sources.file);
  if (help || word === "help") return finish(values, "help");
  if (version || word === "version") return finish(values, "version");
  const places = Object.hasOwn(COMMANDS, word) ? COMMANDS[word] : undefined;
  if (places === undefined) {
    throw new MillraceError("config", `unknown command ${JSON.stringify(word.slice(0, 60))}; see --help`);
  }
  if (words.length > places) {
    throw new MillraceError("config", `unexpected argument ${JSON.stringify(words[places]!.slice(0, 60))}; see --help`);
  }
  return finish(values, word as Command, words);
}

function finish(
  values: Omit<Config, "command" | "words" | "cacheLimitBytes"> & { cacheLimitBytes: number | null },
  command: Command,
  words: readonly string[] = [],
): Config {
  return { ...values, command, words, cacheLimitBytes: values.cacheLimitBytes ?? CACHE_LIMIT_BYTES[values.cache] };
}

/** Text of `--help`. */
export function helpText(): string {
  return `millrace ${VERSION}: plays torrents and broadcasts as MPEG TS and HLS

${USAGE}

Options, most also a variable (--http-port is MILLRACE_HTTP_PORT) and a key of the --config file (http-port):
${optionLines(OPTIONS)}

Sizes: 512MiB, 2GB. Rates: 2MB/s, 16Mbit/s. Times: 30s, 2m. Lists: repeat the flag or separate by commas.
`;
}

/** All options that users see, for manual pages and completions. */
export function shownOptions(): OptionFacts[] {
  return optionFacts(OPTIONS);
}

/** The README's table of options, Markdown. */
export function optionsTable(): string {
  return optionMarkdown(OPTIONS);
}
