/** `verify`: reads films whole through the engine's own readers and muxers, and says what of them does not come out. */
import type { ByteSource } from "../../src/bytes/source.ts";
import type { Config } from "../../src/config.ts";
import { MillraceError } from "../../src/errors.ts";
import { transcodingOf } from "../../src/http/playback-params.ts";
import { FileSource } from "../../src/inputs/file.ts";
import { ForeignPrograms } from "../../src/media/foreign/programs.ts";
import { openMedia } from "../../src/media/open-media.ts";
import { FfmpegEncoder } from "../../src/media/transcode/ffmpeg.ts";
import { verifyMedia, type VerifyReport } from "../../src/media/verify/verify.ts";
import type { Ports } from "../../src/ports.ts";
import { print } from "../host.ts";
import { absolute, untilStopped } from "../peers-only.ts";
import { openHttp } from "./http-source.ts";

/** Exit code when a film is not whole. */
export const EXIT_NOT_WHOLE = 3;

/** Verifies the files and addresses that follow the command; returns the exit code: 0, or `EXIT_NOT_WHOLE`. `say` gets each report. */
export async function runVerify(
  config: Config,
  ports: Ports,
  stopped: Promise<void>,
  say: (text: string) => void = print,
): Promise<number> {
  if (config.words.length === 0) throw new MillraceError("config", "verify needs films: files, or addresses of files");
  let isWhole = true;
  await untilStopped(stopped, async (signal) => {
    for (const name of config.words) {
      const result = await verifyOne(config, ports, name, signal);
      isWhole &&= result.problems.length === 0;
      say(config.json ? JSON.stringify({ name, ...result }) : reportText(name, result));
    }
  });
  return isWhole ? 0 : EXIT_NOT_WHOLE;
}

/** A film that cannot be played at all has its problem alone. */
type Result = VerifyReport | Pick<VerifyReport, "problems">;

async function verifyOne(config: Config, ports: Ports, name: string, signal: AbortSignal): Promise<Result> {
  const { processes, clock, http, log } = ports;
  try {
    return await withFilm(ports, name, signal, async (source) => {
      const presentation = await openMedia(source, {
        fileName: name,
        signal,
        transcode: transcodingOf({}, config.transcodeAudio),
        audioTarget: config.audioTarget,
        audioEncoder: new FfmpegEncoder(processes, clock),
        foreignReader: new ForeignPrograms(processes, http, clock, log),
      });
      return await verifyMedia(presentation, source, signal);
    });
  } catch (error) {
    if (signal.aborted || !(error instanceof MillraceError)) throw error;
    return { problems: [error.message] };
  }
}

async function withFilm<T>(
  { files }: Ports,
  name: string,
  signal: AbortSignal,
  use: (source: ByteSource) => Promise<T>,
): Promise<T> {
  if (/^https?:/i.test(name)) return await use(await openHttp(name, signal));
  const path = absolute(name);
  const { isDirectory, sizeBytes } = await files.info(path);
  if (isDirectory) throw new MillraceError("config", `${name} is a directory`);
  const handle = await files.open(path, "read");
  try {
    return await use(new FileSource(handle, sizeBytes));
  } finally {
    await handle.close();
  }
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;

/** The report as text for people: a line for each fact. */
export function reportText(name: string, result: Result): string {
  const verdict = `${result.problems.length === 0 ? "whole    " : "not whole"} ${name}`;
  const lines = "tracks" in result ? factsOf(result) : [];
  return [verdict, ...lines, ...result.problems.map((text) => `→ ${text}`)].join("\n          ");
}

function factsOf(report: VerifyReport): string[] {
  const { tracks, tsBytes, durationMs, segments, worstSegment, faults, warnings } = report;
  const counted = Object.entries(faults).filter(([, count]) => count > 0);
  return [
    ...tracks.map(({ id, kind, codec, held, ts, hls }) =>
      `${kind} ${id}, ${codec}: ${held} packets, ${ts === null ? "" : `${ts} in MPEG TS, `}${hls} in HLS`
    ),
    ...(tsBytes === null ? [] : [`MPEG TS: ${tsBytes.promised} bytes promised, ${tsBytes.given} given`]),
    ...(durationMs === null ? [] : [
      `length: ${seconds(durationMs.promised)} promised, ${seconds(durationMs.given)} from the first to the last time`,
    ]),
    `segments: ${segments}` +
    (worstSegment === null
      ? ""
      : `, the worst (${worstSegment.index}) differs by ${seconds(worstSegment.offMs)} from the playlist`),
    ...(counted.length === 0 ? [] : [`faults: ${counted.map(([kind, count]) => `${kind} ${count}`).join(", ")}`]),
    ...warnings.map((text) => `note: ${text}`),
  ];
}
