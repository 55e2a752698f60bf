/** Opened media, shared by every session on the same file: an index is read once. */
import { openMedia } from "../media/open.ts";
import type { AudioEncoder, AudioTranscoding } from "../media/transcode/types.ts";
import type { HlsPlan, Presentation } from "../media/types.ts";
import type { Swarm, SwarmReader } from "../swarm/types.ts";
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
  /** Whether the HLS plan is wanted. */
  readonly hls: boolean;
}

/** What an output is made from. */
export interface OpenedFile {
  readonly presentation: Presentation;
  /** null for MPEG TS, which needs none. */
  readonly hls: HlsPlan | null;
}

/** Opens files and keeps what it knows of the last ones. */
export class Presentations {
  readonly #audioEncoder: AudioEncoder | null;
  readonly #tasks = new Map<string, SharedTask<Presentation>>();
  readonly #plans = new Map<string, SharedTask<HlsPlan>>();

  constructor(audioEncoder: AudioEncoder | null = null) {
    this.#audioEncoder = audioEncoder;
  }

  /** Presentations that are kept or being opened. */
  get size(): number {
    return this.#tasks.size;
  }

  /** A file's presentation and what else its output needs; rejects as `openMedia` does, or with the signal's reason. */
  async open(request: PresentationRequest, signal: AbortSignal): Promise<OpenedFile> {
    const { swarm, file, preferredAudioLanguage, transcode } = request;
    const key = JSON.stringify([swarm.infohashHex, file.index, preferredAudioLanguage, transcode]);
    const presentation = await share(this.#tasks, key, (own) => openFile(request, this.#audioEncoder, own), signal);
    const plan = (own: AbortSignal) => withReader(request, (reader) => presentation.planHls(reader, own));
    const hls = request.hls ? await share(this.#plans, key, plan, signal) : null;
    this.#trim();
    return { presentation, hls };
  }

  #trim(): void {
    while (this.#tasks.size > MAX_KEPT) {
      const oldest = this.#tasks.keys().next().value;
      if (oldest === undefined) return;
      this.#tasks.delete(oldest);
      this.#plans.delete(oldest);
    }
  }
}

/** The result of `work` under `key`, as the newest of `tasks`; one that fails is not kept. */
async function share<T>(
  tasks: Map<string, SharedTask<T>>,
  key: string,
  work: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  let task = tasks.get(key);
  if (task === undefined || task.abandoned) task = new SharedTask(work);
  tasks.delete(key);
  tasks.set(key, task);
  try {
    return await task.wait(signal);
  } catch (error) {
    // One who gives up leaves the task to the others; the last takes it along.
    const isOver = !signal.aborted || task.abandoned;
    if (isOver && tasks.get(key) === task) tasks.delete(key);
    throw error;
  }
}

/** Runs `use` with a reader of the file that fetches nothing but what is asked. */
async function withReader<T>(
  { swarm, file }: PresentationRequest,
  use: (reader: SwarmReader) => Promise<T>,
): Promise<T> {
  const reader = swarm.openReader(file.index, { readAheadBytes: 0 });
  try {
    return await use(reader);
  } finally {
    reader.close();
  }
}

function openFile(
  request: PresentationRequest,
  audioEncoder: AudioEncoder | null,
  signal: AbortSignal,
): Promise<Presentation> {
  return withReader(request, async (reader) => {
    const opened = openMedia(reader, {
      fileName: request.file.name,
      preferredAudioLanguage: request.preferredAudioLanguage,
      transcode: request.transcode,
      audioEncoder,
      signal,
    });
    const forgetTail = fetchIndexTail(request.swarm, request.file, signal);
    try {
      return await opened;
    } finally {
      forgetTail();
    }
  });
}
