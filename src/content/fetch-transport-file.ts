/** Fetching a transport file by its address, and hardly anything else. */
import { deadline } from "../bytes/deadline.ts";
import { readBounded } from "../bytes/read-bounded.ts";
import { MillraceError } from "../errors.ts";
import { MAX_TRANSPORT_FILE_BYTES } from "../metainfo/limits.ts";
import { BodyHead } from "./analysis/body-head.ts";
import { CLASSIFY_BYTES, classifyBody } from "./analysis/classify.ts";
import { tooLarge } from "./body-stream.ts";
import { type FetchPorts, guardedOpen, requireSuccess } from "./fetch-guard.ts";

/** For the whole file. */
const TIMEOUT_MS = 20_000;

/** The error of playback for content that has an address of its own and no swarm. */
export function comesByHttp(): MillraceError {
  return new MillraceError("unsupported_media", "this content comes by HTTP: open its own address in the player");
}

/** A transport file from the web. */
export interface FetchedTransportFile {
  readonly bytes: Uint8Array;
  /** As in `OpenedUrl`: the servers it names must be public, too. */
  readonly isPublic: boolean;
}

/**
 * The file at `url`, which begin as a transport file does. Throws as `guardedOpen`, `unsupported_media` for HLS, media and
 * lists, `bad_transport_file` for anything else; all of these are recognised by their first bytes, so an endless stream
 * costs nothing.
 */
export async function fetchTransportFile(
  ports: FetchPorts,
  url: string,
  allowPrivate: boolean,
  signal: AbortSignal,
): Promise<FetchedTransportFile> {
  const late = deadline(
    ports.clock,
    TIMEOUT_MS,
    signal,
    () => new MillraceError("timeout", "the transport file did not come in time"),
  );
  try {
    const options = { maxBytes: MAX_TRANSPORT_FILE_BYTES, timeoutMs: TIMEOUT_MS, allowPrivate };
    const opened = await guardedOpen(ports, url, options, late.signal);
    await requireSuccess(opened);
    const head = new BodyHead(opened.body);
    const type = opened.headers.get("content-type") ?? "";
    const kind = classifyBody(await head.read(CLASSIFY_BYTES), type, new URL(opened.url).pathname);
    if (kind === "transport_file") {
      const limit = MAX_TRANSPORT_FILE_BYTES;
      return { bytes: await readBounded(head.stream(), limit, () => tooLarge(limit)), isPublic: opened.isPublic };
    }
    await head.cancel();
    if (kind === "media" || kind === "m3u") throw comesByHttp();
    throw new MillraceError("bad_transport_file", "bad transport file: the address leads to something else");
  } finally {
    late.cancel();
  }
}
