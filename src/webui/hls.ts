/** HLS in a video element: the browser's own, or hls.js, which is loaded when it is needed. */

import { Decoding } from "./decoding.ts";
import { BASE } from "./engine.ts";

/** A stream in a video element. */
export interface Attached {
  /** Plays audio track `n` of those reported, from now on. */
  chooseSound(n: number): void;
  close(): void;
}

/** A sound that the player can change to at once. */
export interface Sound {
  readonly name: string;
  /** BCP 47; absent: unknown. */
  readonly lang?: string;
}

/** The sounds that a stream has apart from its pictures, and which one is heard. */
export interface Sounds {
  readonly list: readonly Sound[];
  readonly heard: number;
}

/** None: the sound is in the segments of the pictures. */
export const NO_SOUNDS: Sounds = { list: [], heard: 0 };

/** What of hls.js the page uses. */
interface HlsInstance {
  loadSource(url: string): void;
  attachMedia(video: HTMLVideoElement): void;
  on(event: string, listener: (event: string, data: HlsError) => void): void;
  readonly audioTracks: readonly Sound[];
  audioTrack: number;
  startLoad(): void;
  destroy(): void;
}

interface HlsError {
  readonly type: string;
  readonly details: string;
  readonly fatal: boolean;
  readonly mimeType?: string;
  readonly response?: { readonly code: number };
}

interface HlsClass {
  new (config: Record<string, unknown>): HlsInstance;
  isSupported(): boolean;
}

/** Where the engine serves hls.js. */
const HLS_URL = `${BASE}/webui/hls.js`;
/** Between two tries where the engine does not respond, ms. */
const RETRY_MS = 1000;
/** How fast a film is decoded again up to where it was: the fastest that Chromium takes. */
const CATCH_UP_RATE = 16;
/** What browsers call a decoder's failure (`MediaError.MEDIA_ERR_DECODE`). */
const DECODER_FAILED = 3;

/** What a stream in a video element reports. */
export interface Reports {
  /** The browser gives up: the codec, or what is known of it. */
  undecodable(codec: string): void;
  /** Other sounds can be chosen, or another one is heard. */
  heard?(sounds: Sounds): void;
  /** The browser's decoder failed at a place that was sought, and the stream goes on from where it was. */
  unsearchable?(): void;
}

/** Plays `url` in `video`. */
export async function attachHls(video: HTMLVideoElement, url: string, reports: Reports): Promise<Attached> {
  const Hls = await loadHls();
  return Hls !== null && Hls.isSupported()
    ? new AttachedHls(Hls, video, url, reports)
    : attachFile(video, url, reports);
}

/** Plays `url` in `video` by what the browser has itself. */
export function attachFile(video: HTMLVideoElement, url: string, { undecodable }: Reports): Attached {
  const failed = () => undecodable(video.error?.message ?? "");
  video.addEventListener("error", failed);
  video.src = url;
  return {
    chooseSound: () => {},
    close: () => {
      video.removeEventListener("error", failed);
      // What is left of it would be read on.
      video.removeAttribute("src");
      video.load();
    },
  };
}

/** hls.js in a video element, with another one whenever the browser's decoder failed. */
class AttachedHls implements Attached {
  readonly #class: HlsClass;
  readonly #video: HTMLVideoElement;
  readonly #url: string;
  readonly #reports: Reports;
  readonly #decoding = new Decoding();
  readonly #listeners: Readonly<Record<string, () => void>>;
  #hls: HlsInstance;
  /** As the viewer wants it: an element whose decoder failed stands in a pause. */
  #isPaused: boolean;
  #isRestarted = false;
  #retry: ReturnType<typeof setTimeout> | undefined;
  /** Where it stops to play fast, and what the viewer had chosen; null: it does not. */
  #catchUp:
    | { readonly untilS: number; readonly rate: number; readonly muted: boolean; readonly paused: boolean }
    | null = null;

  constructor(hlsClass: HlsClass, video: HTMLVideoElement, url: string, reports: Reports) {
    this.#class = hlsClass;
    this.#video = video;
    this.#url = url;
    this.#reports = reports;
    this.#isPaused = video.paused;
    this.#listeners = {
      play: () => this.#isPaused = false,
      pause: () => this.#isPaused = true,
      seeking: () => this.#decoding.seek(video.currentTime),
      timeupdate: () => this.#shown(),
      loadedmetadata: () => this.#goOn(),
      error: () => video.error?.code === DECODER_FAILED && this.#failed(),
    };
    for (const [name, listener] of Object.entries(this.#listeners)) video.addEventListener(name, listener);
    this.#hls = this.#start(-1);
  }

  chooseSound(n: number): void {
    this.#hls.audioTrack = n;
  }

  close(): void {
    for (const [name, listener] of Object.entries(this.#listeners)) this.#video.removeEventListener(name, listener);
    clearTimeout(this.#retry);
    this.#hls.destroy();
    this.#caughtUp();
  }

  /** `fromS`: -1: at the beginning, or at the live edge. */
  #start(fromS: number): HlsInstance {
    // Workers need a blob: address, which the page's policy does not allow.
    const hls = new this.#class({ enableWorker: false, startPosition: fromS });
    hls.on("hlsError", (_, data) => this.#erred(hls, data));
    const tell = () => this.#reports.heard?.({ list: [...hls.audioTracks], heard: hls.audioTrack });
    for (const event of ["hlsAudioTracksUpdated", "hlsAudioTrackSwitched"]) hls.on(event, tell);
    hls.attachMedia(this.#video);
    hls.loadSource(this.#url);
    return hls;
  }

  #erred(hls: HlsInstance, data: HlsError): void {
    if (hls !== this.#hls) return;
    // hls.js would try the same place again.
    if (this.#video.error?.code === DECODER_FAILED) return this.#failed();
    if (!data.fatal) return;
    if (data.type === "networkError") {
      // What the engine refused it refuses again; a network or an engine that is gone may come back.
      const isRefused = (data.response?.code ?? 0) >= 400;
      if (!isRefused) {
        this.#retry = setTimeout(
          () => data.details.startsWith("manifest") ? hls.loadSource(this.#url) : hls.startLoad(),
          RETRY_MS,
        );
      }
    } else if (data.type === "mediaError" && !/incompatible|codec/i.test(data.details)) {
      this.#failed(data.details);
    } else {
      this.#giveUp(data.mimeType ?? data.details);
    }
  }

  /** The decoder failed, or what feeds it. */
  #failed(details: string = this.#video.error?.message ?? ""): void {
    const video = this.#video;
    const { playbackRate: rate, muted } = video;
    const paused = this.#isPaused;
    const restart = this.#decoding.fail();
    this.#hls.destroy();
    if (restart === null) return this.#giveUp(details);
    if (restart.isSearch) this.#reports.unsearchable?.();
    if (restart.untilS > restart.fromS) this.#catchUp ??= { untilS: restart.untilS, rate, muted, paused };
    this.#hls = this.#start(restart.fromS);
    this.#isRestarted = true;
  }

  /** An element that loads again begins with its usual speed, and in a pause. */
  #goOn(): void {
    if (!this.#isRestarted) return;
    this.#isRestarted = false;
    const video = this.#video;
    if (this.#catchUp !== null) {
      video.muted = true;
      video.playbackRate = CATCH_UP_RATE;
    }
    if (this.#catchUp !== null || !this.#isPaused) video.play().catch(() => {});
  }

  #giveUp(codec: string): void {
    this.#hls.destroy();
    this.#caughtUp();
    this.#reports.undecodable(codec);
  }

  #shown(): void {
    const { seeking, currentTime } = this.#video;
    if (seeking) return;
    this.#decoding.show(currentTime);
    if (this.#catchUp !== null && currentTime >= this.#catchUp.untilS) this.#caughtUp();
  }

  #caughtUp(): void {
    if (this.#catchUp === null) return;
    const { rate, muted, paused } = this.#catchUp;
    this.#catchUp = null;
    this.#video.playbackRate = rate;
    this.#video.muted = muted;
    if (paused) this.#video.pause();
  }
}

async function loadHls(): Promise<HlsClass | null> {
  try {
    return (await import(HLS_URL)).default;
  } catch {
    return null;
  }
}
