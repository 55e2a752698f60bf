/** From the value of `--source` to a `LiveInput`. */
import { deadline, withSignal } from "../bytes/deadline.ts";
import { MillraceError } from "../errors.ts";
import type { LiveInput, LiveInputEvent } from "../live/broadcast/input.ts";
import type { Logger } from "../ports.ts";
import { datagramEvents, LossReport } from "./datagrams.ts";
import { ffmpegEvents, openToAll } from "./ffmpeg.ts";
import { OPEN_TIMEOUT_MS, openFile } from "./file.ts";
import { httpEvents } from "./http.ts";
import { liveInput } from "./input.ts";
import { inspected } from "./inspect.ts";
import { pipeEvents } from "./pipe.ts";
import type { SourcePorts } from "./ports.ts";
import { describeSource, isAwaited, parseSource } from "./spec.ts";

/** How a source is read. */
export interface SourceOptions {
  /** A file is played once, and a connection that ends in order is the end. Default: both begin again. */
  readonly once: boolean;
  /** Standard input, opened when the source is `-`. */
  stdin(): ReadableStream<Uint8Array>;
  /** An absolute path for one that the user gave. */
  resolvePath(path: string): string;
  /** Ends the opening. */
  readonly signal: AbortSignal;
}

/** A source that can be broadcast. */
export interface OpenedSource {
  readonly input: LiveInput;
  /** Mean bitrate, bytes/s, where it is known before anything is sent; else null. */
  readonly bytesPerS: number | null;
  /** For logs: without credentials. */
  readonly description: string;
  /** Somebody has to send to it before it delivers anything. */
  readonly isAwaited: boolean;
  /** Packets that datagrams lost so far (RTP), or transport packets, at least (UDP); null for other sources. */
  lostPackets(): number | null;
}

/**
 * Opens `source`. Faults that the user can mend reject here (`config`, `not_found`, `unsupported_media`). Networks are
 * tried when the input is read, and for as long as it is.
 *
 * @example
 * ```ts
 * import type { Ports } from "../mod.ts";
 *
 * async function openCamera(ports: Ports, signal: AbortSignal): Promise<OpenedSource> {
 *   return await openSource(ports, "udp://0.0.0.0:5000", {
 *     once: true,
 *     stdin: () => new ReadableStream(),
 *     resolvePath: (path) => path,
 *     signal,
 *   });
 * }
 * ```
 */
export async function openSource(ports: SourcePorts, source: string, options: SourceOptions): Promise<OpenedSource> {
  const spec = parseSource(source);
  const description = describeSource(spec);
  const opened = (run: (signal: AbortSignal) => AsyncGenerator<LiveInputEvent, void>): OpenedSource => ({
    input: liveInput((signal) => inspected(announced(run(signal), ports.log, description), ports.log)),
    bytesPerS: null,
    description,
    isAwaited: isAwaited(spec),
    lostPackets: () => null,
  });
  const { once } = options;
  switch (spec.kind) {
    case "stdin":
      return opened((signal) => pipeEvents(options.stdin(), ports.clock, signal));
    case "http":
      return opened((signal) => httpEvents(ports, spec.url, once, signal));
    case "udp":
    case "rtp": {
      const losses = new LossReport(ports, description);
      return {
        ...opened((signal) => datagramEvents(ports, spec, losses, signal)),
        lostPackets: () => losses.lostPackets,
      };
    }
    case "ffmpeg": {
      // Devices of this machine have no scheme.
      if (ports.network.namesAreRemote === true && !isAwaited(spec) && spec.url.includes("://")) {
        throw new MillraceError("config", "--source: ffmpeg would connect beside --proxy: use another kind of source");
      }
      const warning = openToAll(spec.url);
      if (warning !== null) ports.log.log("warn", warning);
      return opened((signal) => ffmpegEvents(ports, { url: spec.url, before: [], once }, signal));
    }
    case "file": {
      const path = options.resolvePath(spec.path);
      const file = await open(ports, path, options);
      if (file !== null) {
        const { events, bytesPerS } = file;
        return { ...opened(events), bytesPerS };
      }
      const before = once ? ["-re"] : ["-re", "-stream_loop", "-1"];
      return opened((signal) =>
        ffmpegEvents(ports, { url: `file:${path}`, before, onlyMedia: true, once: true }, signal)
      );
    }
  }
}

async function open(ports: SourcePorts, path: string, { once, signal }: SourceOptions) {
  const late = deadline(
    ports.clock,
    OPEN_TIMEOUT_MS,
    signal,
    () => new MillraceError("timeout", `${path} could not be read in time`),
  );
  try {
    // Opening a named pipe waits for its writer, and a network drive may hang.
    return await withSignal(openFile(ports, path, { once, signal: late.signal }), late.signal);
  } catch (cause) {
    // The file port puts no paths into errors; this path is the user's own.
    if (!(cause instanceof MillraceError) || (cause.code !== "not_found" && cause.code !== "io")) throw cause;
    throw new MillraceError(cause.code, `cannot read ${path} (${cause.detail?.["errno"] ?? cause.message})`, { cause });
  } finally {
    late.cancel();
  }
}

/**
 * Until the first data arrives somebody waits for the broadcast to begin. If it does not, the reason is logged at once.
 */
async function* announced(
  events: AsyncIterable<LiveInputEvent>,
  log: Logger,
  description: string,
): AsyncGenerator<LiveInputEvent, void> {
  let hasBegun = false;
  for await (const event of events) {
    if (event.kind === "data") hasBegun = true;
    else if (!hasBegun) log.log("warn", `waiting for ${description}`, { reason: event.reason });
    yield event;
  }
}
