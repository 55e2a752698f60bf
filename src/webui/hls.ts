/** HLS in a video element: the browser's own, or hls.js, which is loaded when it is needed. */

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
  recoverMediaError(): void;
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
/** Media errors that are mended by starting the decoder again before the page gives up. */
const MAX_RECOVERIES = 2;

/** Between two tries where the engine does not respond, ms. */
const RETRY_MS = 1000;

/**
 * Plays `url` in `video`. `undecodable` is called with the codec, or what is known of it, when the browser gives up;
 * `heard` whenever other sounds can be chosen, or another one is heard.
 */
export async function attachHls(
  video: HTMLVideoElement,
  url: string,
  undecodable: (codec: string) => void,
  heard: (sounds: Sounds) => void = () => {},
): Promise<Attached> {
  const Hls = await loadHls();
  if (Hls === null || !Hls.isSupported()) {
    video.src = url;
    video.addEventListener("error", () => undecodable(video.error?.message ?? ""), { once: true });
    return { chooseSound: () => {}, close: () => video.removeAttribute("src") };
  }
  // Workers need a blob: address, which the page's policy does not allow.
  const hls = new Hls({ enableWorker: false });
  let recoveries = 0;
  let retry: ReturnType<typeof setTimeout> | undefined;
  hls.on("hlsError", (_, data) => {
    if (!data.fatal) return;
    if (data.type === "networkError") {
      // What the engine refused it refuses again; a network or an engine that is gone may come back.
      const isRefused = (data.response?.code ?? 0) >= 400;
      if (!isRefused) {
        retry = setTimeout(() => data.details.startsWith("manifest") ? hls.loadSource(url) : hls.startLoad(), RETRY_MS);
      }
    } else if (
      data.type === "mediaError" && !/incompatible|codec/i.test(data.details) && recoveries++ < MAX_RECOVERIES
    ) {
      hls.recoverMediaError();
    } else {
      hls.destroy();
      undecodable(data.mimeType ?? data.details);
    }
  });
  const tell = () => heard({ list: [...hls.audioTracks], heard: hls.audioTrack });
  for (const event of ["hlsAudioTracksUpdated", "hlsAudioTrackSwitched"]) hls.on(event, tell);
  hls.attachMedia(video);
  hls.loadSource(url);
  return {
    chooseSound: (n) => {
      hls.audioTrack = n;
    },
    close: () => {
      clearTimeout(retry);
      hls.destroy();
    },
  };
}

async function loadHls(): Promise<HlsClass | null> {
  try {
    return (await import(HLS_URL)).default;
  } catch {
    return null;
  }
}
