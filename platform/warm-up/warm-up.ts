/**
 * What the program does while nobody waits yet, so that the runtime compiles the code that the first start of a stream runs
 * through: requests to itself, and two short films. On a busy machine the first start of an MP4 took 107 to 117 ms with it and
 * 143 to 208 without, of a Matroska file 131 and 223 (medians of 9 to 15 starts of the bundle on Node, from a seeder on
 * loopback). It costs 80 to 130 ms of processor time and 6 MB per start of the program.
 */
import { ChunkBuffers } from "../../src/bytes/chunk-buffers.ts";
import { type ByteSource, copyOf } from "../../src/bytes/source.ts";
import { openMedia } from "../../src/media/open-media.ts";
import type { Clock } from "../../src/ports.ts";
import { loadMatroska, loadMp4 } from "./clips.ts";

/** Deadline for everything together, ms. */
const TIMEOUT_MS = 5_000;

/**
 * Asks `baseUrl` twice, then plays short films from memory, and ignores the results. Never rejects: what fails here will
 * fail again, visibly, for a user.
 */
export async function warmUp(baseUrl: string, clock: Clock): Promise<void> {
  const late = new AbortController();
  const timer = clock.setTimeout(() => late.abort(), TIMEOUT_MS);
  const ask = async (path: string, init: RequestInit) => {
    const response = await fetch(`${baseUrl}${path}`, { ...init, signal: late.signal });
    await response.arrayBuffer();
  };
  try {
    await ask("/webui/api/service?method=get_version", {});
    // Names no stream, so it runs the whole way to the error response.
    await ask("/engine/getstream?format=json", { method: "POST", body: "d" });
    await playShortFilms(late.signal);
  } catch {
    // Ignored, as said above.
  } finally {
    timer.cancel();
  }
}

/** Converts the short films to MPEG TS; returns the sizes of these, bytes. Rejects with the signal's reason. */
export async function playShortFilms(signal: AbortSignal): Promise<number[]> {
  const buffers = new ChunkBuffers();
  const sizes: number[] = [];
  for (const [fileName, load] of [["short.mp4", loadMp4], ["short.mkv", loadMatroska]] as const) {
    const source = inMemory(await load(), buffers);
    const { ts } = await openMedia(source, { fileName, preferredAudioLanguage: null, transcode: null, signal });
    let bytes = 0;
    for await (const chunk of ts.read(0, null, source, signal, buffers)) {
      bytes += chunk.length;
      buffers.release(chunk);
    }
    sizes.push(bytes);
  }
  return sizes;
}

/** A source of `bytes` that lends its memory as that of a swarm does. */
function inMemory(bytes: Uint8Array, buffers: ChunkBuffers): ByteSource {
  return {
    sizeBytes: bytes.length,
    read: (offset, length) => Promise.resolve(copyOf(bytes, offset, length, (size) => buffers.acquire(size))),
    availableFrom: (_offset, maxBytes) => maxBytes,
    hold: (part) => buffers.hold(part),
    release: (part) => buffers.release(part),
  };
}
