/** Opened media, shared by every session on the same file: an index is read once. */
import { openMedia } from "../media/open.ts";
import type { AudioEncoder, AudioTranscoding } from "../media/transcode/types.ts";
import type { Presentation } from "../media/types.ts";
import type { Swarm } from "../swarm/types.ts";
import type { MetainfoFile } from "../transport/types.ts";
import { fetchIndexTail } from "./index-tail.ts";
import { SharedTask } from "./shared-task.ts";

/** Presentations kept; the index of a two-hour film is some 10–20 MB, so few are. */
const MAX_KEPT = 8;

/** What decides a presentation. */
export interface PresentationRequest {
  readonly swarm: Swarm;
  readonly file: MetainfoFile;
  readonly preferredAudioLanguage: string | null;
  readonly transcode: AudioTranscoding | null;
}

/** See the module. */
export class Presentations {
  readonly #audioEncoder: AudioEncoder | null;
  readonly #tasks = new Map<string, SharedTask<Presentation>>();

  constructor(audioEncoder: AudioEncoder | null = null) {
    this.#audioEncoder = audioEncoder;
  }

  /** Presentations that are kept or being opened. */
  get size(): number {
    return this.#tasks.size;
  }

  /** The presentation of a file; rejects as `openMedia` does, or with the signal's reason. */
  async open(request: PresentationRequest, signal: AbortSignal): Promise<Presentation> {
    const { swarm, file, preferredAudioLanguage, transcode } = request;
    const key = JSON.stringify([swarm.infohashHex, file.index, preferredAudioLanguage, transcode]);
    let task = this.#tasks.get(key);
    if (task === undefined || task.abandoned) {
      task = new SharedTask((own) => openFile(request, this.#audioEncoder, own));
      this.#tasks.set(key, task);
    } else {
      this.#tasks.delete(key);
      this.#tasks.set(key, task);
    }
    try {
      const presentation = await task.wait(signal);
      this.#trim();
      return presentation;
    } catch (error) {
      // One who gives up leaves the task to the others; the last takes it along.
      const isOver = !signal.aborted || task.abandoned;
      if (isOver && this.#tasks.get(key) === task) this.#tasks.delete(key);
      throw error;
    }
  }

  #trim(): void {
    while (this.#tasks.size > MAX_KEPT) {
      const oldest = this.#tasks.keys().next().value;
      if (oldest === undefined) return;
      this.#tasks.delete(oldest);
    }
  }
}

async function openFile(
  request: PresentationRequest,
  audioEncoder: AudioEncoder | null,
  signal: AbortSignal,
): Promise<Presentation> {
  const reader = request.swarm.openReader(request.file.index, { readAheadBytes: 0 });
  let forgetTail = () => {};
  try {
    const opened = openMedia(reader, {
      fileName: request.file.name,
      preferredAudioLanguage: request.preferredAudioLanguage,
      transcode: request.transcode,
      audioEncoder,
      signal,
    });
    forgetTail = fetchIndexTail(request.swarm, request.file, signal);
    return await opened;
  } finally {
    forgetTail();
    reader.close();
  }
}
