/** Fetching a transport file by its address, and hardly anything else. */
import { deadline } from "../bytes/deadline.ts";
import { readBounded } from "../bytes/read-bounded.ts";
import { MillraceError } from "../errors.ts";
import { MAX_TRANSPORT_FILE_BYTES } from "../metainfo/limits.ts";
import { BodyHead } from "./analysis/body-head.ts";
import { CLASSIFY_BYTES, classifyBody, headText } from "./analysis/classify.ts";
import { tooLarge, unpacked } from "./body-stream.ts";
import { type FetchPorts, guardedOpen, requireSuccess } from "./fetch-guard.ts";

/** For the whole file. */
const TIMEOUT_MS = 20_000;

/** A body that is a magnet link, whose first line ends within `CLASSIFY_BYTES` or is cut there. */
const MAGNET_LINE = /^\s{0,64}(magnet:\?\S+)/i;

/** The error of playback for content that has an address of its own and no swarm. */
export function comesByHttp(): MillraceError {
  return new MillraceError("unsupported_media", "this content comes by HTTP: open its own address in the player");
}

/** What an address leads to: a transport file, or a magnet link. */
export type FetchedTransportFile =
  & ({ readonly bytes: Uint8Array } | { readonly magnet: string })
  /** As in `OpenedUrl`: the servers it names must be public, too. */
  & { readonly isPublic: boolean };

/**
 * The transport file at `url`, packed by gzip or not, or the magnet link that stands there or that it redirects to, as
 * indexers send them. Throws as `guardedOpen`, `unsupported_media` for HLS, media and lists, `bad_transport_file` for
 * anything else; all of these are recognised by their first bytes, so an endless stream costs nothing.
 */
export async function fetchTransportFile(
  ports: FetchPorts,
  url: string,
  allowPrivate: boolean,
  signal: AbortSignal,
  maxBytes = MAX_TRANSPORT_FILE_BYTES,
): Promise<FetchedTransportFile> {
  const late = deadline(
    ports.clock,
    TIMEOUT_MS,
    signal,
    () => new MillraceError("timeout", "the transport file did not come in time"),
  );
  try {
    const options = { maxBytes, timeoutMs: TIMEOUT_MS, allowPrivate, magnets: true };
    const opened = await guardedOpen(ports, url, options, late.signal);
    const { isPublic, magnet } = opened;
    if (magnet !== undefined) return { magnet, isPublic };
    await requireSuccess(opened);
    const path = new URL(opened.url).pathname;
    const type = opened.headers.get("content-type") ?? "";
    let head = new BodyHead(opened.body);
    let start = await head.read(CLASSIFY_BYTES);
    let kind = classifyBody(start, type, path);
    if (kind === "gzip") {
      head = new BodyHead(unpacked(head.stream()));
      start = await head.read(CLASSIFY_BYTES);
      kind = classifyBody(start, "", path);
    }
    if (kind === "transport_file") {
      return { bytes: await readBounded(head.stream(), maxBytes, () => tooLarge(maxBytes)), isPublic };
    }
    await head.cancel();
    if (kind === "media" || kind === "m3u") throw comesByHttp();
    const link = MAGNET_LINE.exec(headText(start))?.[1];
    if (link !== undefined) return { magnet: link, isPublic };
    throw new MillraceError("bad_transport_file", "bad transport file: the address leads to something else");
  } finally {
    late.cancel();
  }
}
