/** A film on a web server, read by ranges. */
import type { ByteSource, ReadOptions } from "../../src/bytes/source.ts";
import { MillraceError } from "../../src/errors.ts";

/** One read takes no longer, ms. */
const READ_TIMEOUT_MS = 60_000;

async function fetchRange(url: string, start: number, end: number, signal: AbortSignal): Promise<Response> {
  const headers = { range: `bytes=${start}-${end - 1}` };
  const limited = AbortSignal.any([signal, AbortSignal.timeout(READ_TIMEOUT_MS)]);
  let response: Response;
  try {
    response = await fetch(url, { headers, signal: limited });
  } catch (cause) {
    signal.throwIfAborted();
    throw new MillraceError("connection_failed", `${url} does not respond`, { cause });
  }
  if (response.status === 206) return response;
  await response.body?.cancel();
  const why = response.status === 200 ? "its server sends no ranges: download it first" : `status ${response.status}`;
  throw new MillraceError("unavailable", `${url} cannot be read: ${why}`);
}

/** Asks for the size of the file at `url`. Rejects with `connection_failed` or `unavailable`. */
export async function openHttp(url: string, signal: AbortSignal): Promise<ByteSource> {
  const first = await fetchRange(url, 0, 1, signal);
  await first.arrayBuffer();
  const sizeBytes = Number(/\/(\d+)$/.exec(first.headers.get("content-range") ?? "")?.[1] ?? NaN);
  if (!Number.isSafeInteger(sizeBytes)) {
    throw new MillraceError("unavailable", `${url} cannot be read: its server does not say how long it is`);
  }
  return {
    sizeBytes,
    async read(offset: number, length: number, options: ReadOptions) {
      if (length === 0) return new Uint8Array(0);
      const response = await fetchRange(url, offset, offset + length, options.signal);
      const bytes = new Uint8Array(await response.arrayBuffer());
      if (bytes.length === length) return bytes;
      throw new MillraceError("connection_failed", `${url}: a range came with ${bytes.length} of ${length} bytes`);
    },
  };
}
