/**
 * How far ffmpeg may reach for one source. Playlists and the like name further addresses. With them the one that serves
 * a playlist could have a file of this machine broadcast to everybody, or a service of its network asked.
 */

/** Over the web, whatever the playlists name. */
const WEB = ["http", "https", "httpproxy", "tcp", "tls", "crypto", "data"];

/** Protocols that a source of a scheme may use; a scheme that is not listed uses only itself. */
const PROTOCOLS: Readonly<Record<string, readonly string[]>> = {
  file: ["file", "crypto", "data"],
  concat: ["concat", "file"],
  subfile: ["subfile", "file"],
  http: WEB,
  https: WEB,
  hls: ["hls", ...WEB],
  mmsh: ["mmsh", "http", "tcp"],
  mmst: ["mmst", "tcp"],
  ftp: ["ftp", "tcp"],
  sftp: ["sftp", "tcp"],
  rtmp: ["rtmp", "tcp"],
  rtmps: ["rtmps", "rtmp", "tls", "tcp"],
  rtmpt: ["rtmpt", "ffrtmphttp", "http", "tcp"],
  rtmpts: ["rtmpts", "ffrtmphttp", "https", "tls", "tcp"],
  rtsp: ["rtsp", "rtp", "srtp", "udp", "tcp"],
  rtsps: ["rtsps", "rtsp", "rtp", "srtp", "udp", "tls", "tcp"],
  rtp: ["rtp", "srtp", "udp"],
  srtp: ["srtp", "rtp", "udp"],
  srt: ["srt", "udp"],
  rist: ["rist", "udp"],
  udplite: ["udplite", "udp"],
};

/**
 * Containers and elementary streams, by ffmpeg's names: formats whose content is all in the file, and none of it
 * elsewhere.
 */
const MEDIA = [
  ...[
    "mov",
    "matroska",
    "webm",
    "mpegts",
    "mpeg",
    "mpegvideo",
    "avi",
    "flv",
    "live_flv",
    "asf",
    "rm",
    "ogg",
    "mxf",
    "gxf",
  ],
  ...[
    "nut",
    "wtv",
    "dv",
    "ivf",
    "swf",
    "nsv",
    "y4m",
    "yuv4mpegpipe",
    "h264",
    "hevc",
    "vvc",
    "av1",
    "obu",
    "m4v",
    "mjpeg",
    "vc1",
  ],
  ...[
    "mp3",
    "aac",
    "loas",
    "ac3",
    "eac3",
    "dts",
    "dtshd",
    "truehd",
    "mlp",
    "flac",
    "wav",
    "w64",
    "aiff",
    "caf",
    "au",
    "ape",
  ],
  ...[
    "wv",
    "tta",
    "tak",
    "amr",
    "spdif",
    "mpc",
    "mpc8",
    "lmlm4",
    "ea",
    "4xm",
    "bink",
    "smk",
    "ingenient",
    "cdxl",
    "pva",
    "ty",
  ],
];

/** Options before `-i` for `url`; `onlyMedia` as in `FfmpegJob`. */
export function reachArguments(url: string, onlyMedia: boolean): string[] {
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(url)?.[1]?.toLowerCase() ?? "file";
  const protocols = Object.hasOwn(PROTOCOLS, scheme) ? PROTOCOLS[scheme]! : [scheme];
  return [
    ...["-protocol_whitelist", protocols.join(",")],
    ...(onlyMedia ? ["-format_whitelist", MEDIA.join(",")] : []),
  ];
}
