/** Opened media, shared by every session on the same file: an index is read once. */
import type { ForeignReader } from "../media/model/foreign-reader.ts";
import { openMedia } from "../media/open-media.ts";
import type { AudioEncoder, AudioTarget, AudioTranscoding } from "../media/model/audio-target.ts";
import type { HlsFormat, HlsPlan, Presentation } from "../media/model/types.ts";
import type { Swarm, SwarmReader } from "../swarm/types.ts";
import type { MetainfoFile } from "../metainfo/types.ts";
import { abortError } from "../errors.ts";
import type { MemoryAccount } from "../media/source/work.ts";
import { fetchIndexTail } from "./index-tail.ts";
import { IndexMemory } from "./index-memory.ts";
import { SharedTask } from "./shared-task.ts";
import { OWN, type ShareHolder } from "../bytes/shares.ts";

/** Presentations kept; the index of a two-hour film is some 10–20 MB, so few are. */
const MAX_KEPT = 8;

/** What identifies a presentation. */
export interface PresentationRequest {
  readonly swarm: Swarm;
  readonly file: MetainfoFile;
  readonly preferredAudioLanguage: string | null;
  readonly transcode: AudioTranscoding | null;
  /** The format of the HLS segments; null: MPEG TS is wanted instead, without a plan. */
  readonly hls: HlsFormat | null;
  /** The holder whose memory it takes, if it is not open yet; default: this machine's. */
  readonly holder?: ShareHolder;
}

/** What an output is made from. */
export interface OpenedFile {
  readonly presentation: Presentation;
  /** null for MPEG TS, which needs none. */
  readonly hls: HlsPlan | null;
  /** To be called when it is no longer used. Idempotent. */
  release(): void;
}

/** A presentation that was opened, and its users. */
interface Opened {
  readonly presentation: Presentation;
  readonly memory: MemoryAccount;
  users: number;
  /** True when a later session may use it again. */
  isKept: boolean;
  /** True while `memory` counts it: in use, or kept for later use. */
  isCounted: boolean;
}

/** The programs that opening files may use, and the format of converted sound. */
export interface FileMaking {
  /** Converts sound; null or absent: sound is not converted. */
  readonly audioEncoder?: AudioEncoder | null;
  /** Default AAC. */
  readonly audioTarget?: AudioTarget;
  /** Reads containers that we have no reader for; null or absent: they are refused. */
  readonly foreignReader?: ForeignReader | null;
}

/** Opens files and remembers what it learned about the latest ones. */
export class Presentations {
  readonly #making: FileMaking;
  readonly #tasks = new Map<string, SharedTask<Opened>>();
  /** Those of `#tasks` that have ended. */
  readonly #opened = new Map<string, Opened>();
  readonly #plans = new Map<string, SharedTask<HlsPlan>>();
  readonly #memory = new IndexMemory(() => this.#dropIdle());

  constructor(making: FileMaking = {}) {
    this.#making = making;
  }

  /** Presentations that are kept or being opened. */
  get size(): number {
    return this.#tasks.size;
  }

  /** Memory that indexes take, bytes. */
  get heldBytes(): number {
    return this.#memory.heldBytes;
  }

  /**
   * A file's presentation and what else its output needs; rejects as `openMedia` does, with `too_busy` when there is no
   * memory for its index, or with the signal's reason.
   */
  async open(request: PresentationRequest, signal: AbortSignal): Promise<OpenedFile> {
    if (request.hls === "fmp4") return await this.#open(request, true, signal);
    // Most films are the same for all outputs.
    const opened = await this.#open(request, undefined, signal);
    if (request.hls === "auto" || !opened.presentation.hlsOnly) return opened;
    opened.release();
    return await this.#open(request, false, signal);
  }

  /** As `open`; `fragmented` as in `PresentationOptions`. */
  async #open(
    request: PresentationRequest,
    fragmented: boolean | undefined,
    signal: AbortSignal,
  ): Promise<OpenedFile> {
    const { swarm, file, preferredAudioLanguage, transcode } = request;
    const key = JSON.stringify([swarm.infohashHex, file.index, preferredAudioLanguage, transcode, fragmented]);
    const open = (own: AbortSignal) => this.#openFile(key, request, fragmented, own);
    const opened = await share(this.#tasks, key, open, signal);
    opened.users++;
    let isInUse = true;
    const release = () => {
      if (!isInUse) return;
      isInUse = false;
      opened.users--;
      this.#settle(opened);
    };
    try {
      const { presentation } = opened;
      const plan = (own: AbortSignal) => withReader(request, (reader) => presentation.planHls(reader, own));
      const hls = request.hls !== null ? await share(this.#plans, key, plan, signal) : null;
      this.#trim();
      return { presentation, hls, release };
    } catch (error) {
      release();
      throw error;
    }
  }

  async #openFile(
    key: string,
    request: PresentationRequest,
    fragmented: boolean | undefined,
    signal: AbortSignal,
  ): Promise<Opened> {
    const memory = this.#memory.accountOf(request.holder ?? OWN);
    const presentation = await openFile(request, fragmented, this.#making, memory, signal);
    // Nobody waits any more, and another task may have taken this one's place.
    if (signal.aborted) throw abortError(signal);
    memory.take(presentation.indexBytes);
    const opened = { presentation, memory, users: 0, isKept: true, isCounted: true };
    this.#opened.set(key, opened);
    return opened;
  }

  #trim(): void {
    for (const key of this.#tasks.keys()) {
      if (this.#opened.size <= MAX_KEPT) return;
      if (this.#opened.has(key)) this.#drop(key);
    }
  }

  /** Drops the least recently used of the unused ones; false when there is none. */
  #dropIdle(): boolean {
    for (const key of this.#tasks.keys()) {
      if (this.#opened.get(key)?.users !== 0) continue;
      this.#drop(key);
      return true;
    }
    return false;
  }

  #drop(key: string): void {
    const opened = this.#opened.get(key);
    this.#tasks.delete(key);
    this.#plans.delete(key);
    this.#opened.delete(key);
    if (opened === undefined) return;
    opened.isKept = false;
    this.#settle(opened);
  }

  #settle(opened: Opened): void {
    if (opened.users > 0 || opened.isKept || !opened.isCounted) return;
    opened.isCounted = false;
    opened.memory.giveBack(opened.presentation.indexBytes);
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
    // A caller that gives up leaves the task to the others; the last one ends it.
    const isOver = !signal.aborted || task.abandoned;
    if (isOver && tasks.get(key) === task) tasks.delete(key);
    throw error;
  }
}

/** Runs `use` with a reader of the file that fetches only the requested bytes. */
async function withReader<T>(
  { swarm, file, holder }: PresentationRequest,
  use: (reader: SwarmReader) => Promise<T>,
): Promise<T> {
  const reader = swarm.openReader(file.index, { readAheadBytes: 0 });
  reader.holder = holder;
  try {
    return await use(reader);
  } finally {
    reader.close();
  }
}

function openFile(
  request: PresentationRequest,
  fragmented: boolean | undefined,
  making: FileMaking,
  memory: MemoryAccount,
  signal: AbortSignal,
): Promise<Presentation> {
  return withReader(request, async (reader) => {
    const opened = openMedia(reader, {
      fileName: request.file.name,
      preferredAudioLanguage: request.preferredAudioLanguage,
      transcode: request.transcode,
      fragmented,
      ...making,
      memory,
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
