/** Finds out what an address leads to from its response. */
import { deadline } from "../../bytes/deadline.ts";
import { sniffContainer } from "../../bytes/container.ts";
import { readBounded } from "../../bytes/read-bounded.ts";
import { abortError, hasCode, MillraceError } from "../../errors.ts";
import { isWrapperFile, parseWrapper } from "../../metainfo/wrapper.ts";
import { tooLarge, unpacked } from "../body-stream.ts";
import { guardedOpen, type OpenedUrl, requireSuccess } from "../fetch-guard.ts";
import { type HlsHead, isHlsPlaylist, MAX_PLAYLIST_BYTES, readHlsHead } from "../hls-playlist.ts";
import { MAX_TRANSPORT_FILE_BYTES, mayNamePrivate, type ResolveContext } from "../resolve.ts";
import { BodyHead } from "./body-head.ts";
import { CLASSIFY_BYTES, classifyBody, headText, isEndless, mediaMime } from "./classify.ts";
import { NOTHING, torrent, wrapped } from "./describe.ts";
import { addressTitle, headerCategories, headerTitle } from "./title.ts";
import { headersFor, type PlayerAddress, readPlayerAddress } from "./player-address.ts";
import { serviceName } from "../../bytes/ts/service-name.ts";
import type { Analysis, AnalyzerParts, Inspection } from "./analysis.ts";

/** For one address, its variants included. */
const URL_TIMEOUT_MS = 20_000;
/** Longest silence within a body: then the bytes received so far have to do. */
const IDLE_MS = 3000;
/** Variants of an HLS playlist that are tried until one responds. */
const MAX_VARIANTS = 4;
/**
 * Length of a text that begins as M3U, read to distinguish HLS from a list of channels: headers may name hundreds of
 * guides.
 */
const LIST_HEAD_BYTES = 256 * 1024;

/** For the name of a programme. */
const NAME_TIMEOUT_MS = 2500;
const NAME_STEP_BYTES = 64 * 1024;
const MAX_NAME_BYTES = 1024 * 1024;

/**
 * Analyses the content of `url`; null when it is no content.
 *
 * @throws `invalid_argument`, `denied`, `not_found`, `too_large`, `timeout`, `protocol_violation`, `connection_failed`,
 * or the signal's reason: as `guardedOpen`; and for failure statuses
 */
export async function inspectUrl(
  parts: AnalyzerParts,
  url: string,
  context: ResolveContext,
): Promise<Inspection | null> {
  const late = deadline(
    parts.ports.clock,
    URL_TIMEOUT_MS,
    context.signal,
    () => new MillraceError("timeout", `no answer from ${new URL(url).host} in time`),
  );
  try {
    const allowPrivate = await mayNamePrivate(parts, context, url);
    return await new UrlInspection(parts, url, { ...context, isFromPublic: !allowPrivate }, late.signal).run();
  } finally {
    late.cancel();
  }
}

/** Facts that most kinds of content lack. */
const BARE = { metainfo: null, wrapper: null, sizeBytes: null, entries: [] } as const;
const TRANSPORT_FILE_MIME = "application/x-bittorrent";
const HLS_MIME = "application/vnd.apple.mpegurl";
const LIST_MIME = "audio/x-mpegurl";

/** The inspection of one address. */
class UrlInspection {
  readonly #parts: AnalyzerParts;
  /** As the caller gave it. */
  readonly #url: string;
  readonly #address: PlayerAddress;
  readonly #context: ResolveContext;
  readonly #signal: AbortSignal;
  /** What comes next may not be private: because of the caller, or because a server of the Internet answered. */
  #isPublic: boolean;

  constructor(parts: AnalyzerParts, url: string, context: ResolveContext, signal: AbortSignal) {
    this.#parts = parts;
    this.#url = url;
    this.#address = readPlayerAddress(url);
    this.#context = context;
    this.#signal = signal;
    this.#isPublic = context.isFromPublic === true;
  }

  async run(): Promise<Inspection | null> {
    let opened = await this.#open(this.#address.url);
    let head = new BodyHead(opened.body);
    try {
      let kind = await this.#classify(head, opened);
      if (kind === "gzip") {
        // A second layer makes a gigabyte of a kilobyte.
        if (opened.isUnpacked) return null;
        head = new BodyHead(unpacked(head.stream()));
        opened = { ...opened, isUnpacked: true };
        kind = await this.#classify(head, opened).catch(() => null);
        // Media and transport files are not compressed; what claims to be one and is compressed is no content.
        if (kind !== "m3u") return null;
      }
      switch (kind) {
        case "transport_file":
          return await this.#transportFile(head);
        case "m3u":
          return await this.#playlist(head, opened);
        case "media":
          return await this.#media(head, opened);
        default:
          return null;
      }
    } finally {
      await head.cancel();
    }
  }

  async #open(url: string): Promise<OpenedUrl> {
    const opened = await guardedOpen(this.#parts.ports, url, {
      // A compressed response has no length, which is how we distinguish files from streams.
      headers: { ...headersFor(this.#address, url), "accept-encoding": "identity" },
      timeoutMs: URL_TIMEOUT_MS,
      idleMs: IDLE_MS,
      allowPrivate: !this.#isPublic,
    }, this.#signal);
    this.#isPublic ||= opened.isPublic;
    await requireSuccess(opened);
    return opened;
  }

  async #classify(head: BodyHead, { headers, url }: OpenedUrl) {
    return classifyBody(await head.read(CLASSIFY_BYTES), headers.get("content-type") ?? "", new URL(url).pathname);
  }

  async #transportFile(head: BodyHead): Promise<Inspection | null> {
    try {
      const bytes = await readBounded(
        head.stream(),
        MAX_TRANSPORT_FILE_BYTES,
        () => tooLarge(MAX_TRANSPORT_FILE_BYTES),
      );
      const { content } = this.#parts;
      if (isWrapperFile(bytes)) {
        const wrapper = await parseWrapper(bytes);
        return { ...BARE, analysis: await wrapped(wrapper, this.#url), wrapper, mime: TRANSPORT_FILE_MIME };
      }
      const metainfo = await content.find({ kind: "transport_file", bytes }, {
        ...this.#context,
        isFromPublic: this.#isPublic,
        signal: this.#signal,
      });
      const analysis = await torrent(content, metainfo, { title: metainfo.name, itemUrl: this.#url });
      return { ...BARE, analysis, metainfo, mime: TRANSPORT_FILE_MIME };
    } catch (error) {
      if (hasCode(error, "bad_transport_file") || hasCode(error, "too_large")) return null;
      throw error;
    }
  }

  async #playlist(head: BodyHead, opened: OpenedUrl): Promise<Inspection | null> {
    if (isHlsPlaylist(headText(await head.read(LIST_HEAD_BYTES)))) return await this.#hls(head, opened);
    const named = /^#PLAYLIST:(.+)$/m.exec(headText(await head.read(LIST_HEAD_BYTES)))?.[1]?.trim();
    const facts = await this.#parts.readList(head.stream(), opened.url, this.#signal, opened.isUnpacked);
    if (facts === null) return null;
    const analysis: Analysis = {
      ...NOTHING,
      contentType: "playlist",
      itemUrl: this.#url,
      title: named || headerTitle(opened.headers) || addressTitle(opened.url),
      categories: [...facts.categories],
    };
    return { ...BARE, analysis, mime: LIST_MIME, entries: facts.entries };
  }

  async #hls(head: BodyHead, opened: OpenedUrl): Promise<Inspection> {
    const playlist = hlsHead(headText(await head.read(MAX_PLAYLIST_BYTES)), opened.url);
    const isLive = playlist.variants === null ? playlist.isLive : await this.#firstVariant(playlist.variants);
    const analysis: Analysis = {
      ...NOTHING,
      contentType: isLive === false ? "hls_vode" : "hls",
      itemUrl: this.#url,
      title: playlist.title ?? headerTitle(opened.headers) ?? addressTitle(opened.url),
      isLive: isLive === null ? -1 : isLive ? 1 : 0,
      categories: headerCategories(opened.headers),
    };
    return { ...BARE, analysis, mime: HLS_MIME };
  }

  /** Whether the first variant that responds is live; null when none does. */
  async #firstVariant(variants: readonly string[]): Promise<boolean | null> {
    for (const url of variants.slice(0, MAX_VARIANTS)) {
      let head: BodyHead | null = null;
      try {
        const opened = await this.#open(url);
        head = new BodyHead(opened.body);
        const text = headText(await head.read(MAX_PLAYLIST_BYTES));
        if (!isHlsPlaylist(text)) continue;
        const { isLive } = readHlsHead(text, opened.url);
        if (isLive !== null) return isLive;
      } catch {
        if (this.#signal.aborted) throw abortError(this.#signal);
      } finally {
        await head?.cancel();
      }
    }
    return null;
  }

  /** The name of a transport stream's programme: its table comes every two seconds (ETSI TS 101 211, 4.4). */
  async #programmeName(head: BodyHead, start: Uint8Array): Promise<string | null> {
    if (sniffContainer(start) !== "mpegts") return null;
    const { clock } = this.#parts.ports;
    const endMs = clock.monotonic() + NAME_TIMEOUT_MS;
    let bytes = start;
    for (let size = NAME_STEP_BYTES; size <= MAX_NAME_BYTES; size += NAME_STEP_BYTES) {
      const name = serviceName(bytes);
      if (name !== null || bytes.length < size - NAME_STEP_BYTES || clock.monotonic() > endMs) return name;
      bytes = await head.read(size);
    }
    return serviceName(bytes);
  }

  async #media(head: BodyHead, opened: OpenedUrl): Promise<Inspection> {
    const start = await head.read(CLASSIFY_BYTES);
    const isStream = !head.isWhole && isEndless(start, opened.headers);
    const title = headerTitle(opened.headers) ?? await this.#programmeName(head, start) ?? addressTitle(opened.url);
    const analysis: Analysis = {
      ...NOTHING,
      contentType: isStream ? "direct_stream" : "direct_content",
      itemUrl: this.#url,
      title,
      isLive: isStream ? 1 : 0,
      categories: headerCategories(opened.headers),
    };
    const length = opened.headers.get("content-length");
    return {
      ...BARE,
      analysis,
      mime: mediaMime(start, opened.headers.get("content-type") ?? "", new URL(opened.url).pathname),
      sizeBytes: isStream ? null : head.isWhole ? start.length : length === null ? null : Number(length),
    };
  }
}

/** The facts in a playlist; none if its mistakes make it unreadable, because then only players can judge it. */
function hlsHead(text: string, url: string): HlsHead {
  try {
    return readHlsHead(text, url);
  } catch (error) {
    if (hasCode(error, "bad_media")) return { title: null, variants: null, isLive: null };
    throw error;
  }
}
