/** What ffmpeg says on its error output while it decodes sound: why it fails, and how much silence it puts in. */

/** Arguments with which ffmpeg says it. */
export const LOG_ARGUMENTS: readonly string[] = ["-nostats", "-loglevel", "repeat+level+verbose"];
/** Most bytes of a line that are looked at, and most of the first error that are kept. */
const MAX_LINE_BYTES = 2048;

const LEVELLED = /\[(panic|fatal|error|warning|info|verbose)\] (.*)/;
const ERRORS: ReadonlySet<string> = new Set(["panic", "fatal", "error"]);

/** Reads the error output of one process. */
export class FfmpegLog {
  /** The first error, without ffmpeg's own words around it; empty while there is none. */
  firstError = "";
  #silentSamples = 0;
  #hasFailed = false;
  #rest = "";
  readonly #decoder = new TextDecoder();

  /**
   * Samples of silence in place of sound so far. Those of a source that has gaps do not count: something in it could not be
   * decoded.
   */
  get silentSamples(): number {
    return this.#hasFailed ? this.#silentSamples : 0;
  }

  /** Takes more output. */
  push(bytes: Uint8Array): void {
    const lines = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split("\n");
    this.#rest = lines.pop()!.slice(0, MAX_LINE_BYTES);
    for (const line of lines) this.#take(line.slice(0, MAX_LINE_BYTES));
  }

  /** Reads all of `stream`. */
  async read(stream: ReadableStream<Uint8Array>): Promise<this> {
    for await (const chunk of stream) this.push(chunk);
    this.push(new TextEncoder().encode("\n"));
    return this;
  }

  #take(line: string): void {
    // What has no level comes from elsewhere, such as the loader.
    const [, level = "error", text = line] = LEVELLED.exec(line) ?? [];
    if (ERRORS.has(level)) {
      this.firstError ||= text;
      // "Error while decoding stream" up to ffmpeg 5, "Error submitting packet to decoder" from 6 on.
      if (/^Error .*decod/.test(text)) this.#hasFailed = true;
    }
    const [, samples] = /^adding (\d{1,9}) audio samples of silence/.exec(text) ?? [];
    if (samples !== undefined) this.#silentSamples += Number(samples);
  }
}
