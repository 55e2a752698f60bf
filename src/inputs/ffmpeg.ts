/** Sources that only ffmpeg reads: SRT, RTMP, RTSP and all its other formats, copied into a transport stream. */
import { hasCode, MillraceError } from "../errors.ts";
import type { LiveInputEvent } from "../live/broadcast/input.ts";
import type { ChildProcess } from "../ports.ts";
import { reachArguments } from "./ffmpeg-reach.ts";
import { inPackets } from "./packets.ts";
import type { SourcePorts } from "./ports.ts";
import { FatalSourceError, RETRY_FIRST_MS, retrying } from "./retry.ts";
import { describeUrl, listens, withoutSecrets } from "./spec.ts";

/** Characters kept from the end of ffmpeg's error output: its last line says why it stopped. */
const MAX_COMPLAINT_CHARS = 2048;
/** Before its first output ffmpeg connects and reads five seconds of the stream, ms. */
const FIRST_MS = 30_000;
/** Time for a process that was asked to end, ms. */
const END_MS = 1000;

/** The input of ffmpeg. */
export interface FfmpegJob {
  /** Address or path, as ffmpeg's `-i` takes it. */
  readonly url: string;
  /** Options before `-i`. */
  readonly before: readonly string[];
  /**
   * Does not read formats that name other files or addresses, such as playlists. For an address that turned out to be
   * some file; a user who writes `ffmpeg:` means it. Default false.
   */
  readonly onlyMedia?: boolean;
  /** An end in order is the end of the source. */
  readonly once: boolean;
}

/** Copies the first picture and every sound; nothing is encoded again. */
function copyArguments({ url, before, onlyMedia = false }: FfmpegJob): string[] {
  return [
    ...["-hide_banner", "-loglevel", "error", "-nostdin"],
    ...before,
    ...reachArguments(url, onlyMedia),
    ...addressArguments(url),
    ...["-map", "0:v:0?", "-map", "0:a?", "-c", "copy"],
    ...["-f", "mpegts", "-flush_packets", "1", "pipe:1"],
  ];
}

/**
 * RTP has no decoding times, and ffmpeg knows none for the pictures from which it learns how they are reordered: MPEG TS cannot
 * take these. With this flag it keeps none of what it read before it knew.
 */
const RTSP = ["-fflags", "nobuffer"];

/**
 * RTSP goes over TCP, because UDP loses packets, and over UDP where the server has nothing else, like VLC's. `?listen=1` has
 * an RTMP or RTSP sender connect to us, which ffmpeg wants as a separate option.
 */
function addressArguments(url: string): string[] {
  const [address = url] = url.split("?");
  switch (listens(url)) {
    case "rtmp":
      return ["-listen", "1", "-i", address];
    case "rtsp":
      return [...RTSP, "-rtsp_flags", "listen", "-i", address];
    case "srt":
      // ffmpeg would call this machine where no host is named; other programs listen.
      return ["-i", /[?&]mode=/i.test(url) ? url : `${url}${url.includes("?") ? "&" : "?"}mode=listener`];
    case null:
      return /^rtsps?:/i.test(url) ? [...RTSP, "-rtsp_flags", "prefer_tcp", "-i", url] : ["-i", url];
  }
}

/**
 * A warning for an address on which anybody who reaches it may become the source; null for others. ffmpeg does not check
 * the path of an address that it listens on, and so no key in it: it takes the first sender that comes.
 */
export function openToAll(url: string): string | null {
  const [address = url, query = ""] = url.split("?");
  const protocol = listens(url);
  if (protocol === null || (protocol === "srt" && new URLSearchParams(query).has("passphrase"))) return null;
  if (/^[a-z]+:\/\/(?:[^@/]*@)?(?:127\.|localhost[:/]|\[::1\])/i.test(address)) return null;
  const why = protocol === "srt" ? "it has no passphrase" : "the key in it is not checked";
  const [scheme, rest = ""] = address.split("://", 2);
  const place = `${scheme}://${rest.split("/", 1)[0]!.split("@").at(-1)}`;
  return `whoever reaches ${place} can send what is broadcast (${why}): listen on 127.0.0.1, or let a firewall decide`;
}

/** Reads `job.url` with the `ffmpeg` on the PATH; starts it again when it ends. Rejects when there is none. */
export function ffmpegEvents(
  ports: Pick<SourcePorts, "clock" | "processes">,
  job: FfmpegJob,
  signal: AbortSignal,
): AsyncGenerator<LiveInputEvent, void> {
  let hasRun = false;
  const connect = async function* (own: AbortSignal): AsyncGenerator<Uint8Array, void> {
    try {
      for await (const chunk of output(ports, job, own)) {
        hasRun = true;
        yield chunk;
      }
    } catch (cause) {
      // If it was there once, it is being replaced and will be there again.
      if (hasRun || !hasCode(cause, "unavailable")) throw cause;
      throw new FatalSourceError(
        "unavailable",
        `reading ${
          describeUrl(job.url)
        } takes ffmpeg, which is not on the PATH: install it, or pipe a transport stream in ` +
          `with --source -`,
        { cause },
      );
    }
  };
  // While nobody listens, senders are refused, and some do not come again.
  const pauses = listens(job.url) === null ? {} : { mostPauseMs: RETRY_FIRST_MS };
  return inPackets(retrying(ports.clock, connect, { once: job.once, firstMs: FIRST_MS, signal, ...pauses }));
}

async function* output(
  { clock, processes }: Pick<SourcePorts, "clock" | "processes">,
  job: FfmpegJob,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  const child = await processes.spawn("ffmpeg", copyArguments(job));
  const end = () => child.kill("SIGKILL");
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  try {
    const complaint = lastWords(child);
    // Its commands are keys on standard input, and it has none.
    void child.stdin.close().catch(() => {});
    yield* child.stdout;
    const code = await child.exited;
    if (code === 0) return;
    const why = (await complaint).trim().split("\n").pop() || `it ended with ${code}`;
    throw new MillraceError("connection_failed", `ffmpeg: ${withoutSecrets(why, job.url)}${hint(job.url, why)}`);
  } finally {
    signal.removeEventListener("abort", end);
    child.kill("SIGTERM");
    const timer = clock.setTimeout(end, END_MS);
    void child.exited.then(() => timer.cancel());
  }
}

/** What ffmpeg does not say: it has the same words for whatever the other side of an SRT address refuses. */
function hint(url: string, why: string): string {
  if (!/^srt:/i.test(url) || !why.endsWith("Input/output error")) return "";
  return " (nobody answers there, or the passphrase or streamid is wrong)";
}

async function lastWords(child: ChildProcess): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const chunk of child.stderr) {
      text = (text + decoder.decode(chunk, { stream: true })).slice(-MAX_COMPLAINT_CHARS);
    }
  } catch {
    // The earlier output is enough.
  }
  return text;
}
