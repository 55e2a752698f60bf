/** Requests to a device in the local network, bounded in time and size. */
import { readBounded } from "../bytes/read-bounded.ts";
import { abortError, MillraceError } from "../errors.ts";

/** Longest answer, bytes: descriptions have some kilobytes. */
const MAX_ANSWER_BYTES = 256 * 1024;

/** What a device answered. */
export interface DeviceAnswer {
  readonly status: number;
  readonly text: string;
}

/** Asks a device; redirects are not followed. Rejects with `connection_failed`, `too_large` or the signal's reason. */
export async function askDevice(
  fetcher: typeof fetch,
  url: URL,
  init: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string },
  signal: AbortSignal,
): Promise<DeviceAnswer> {
  try {
    const response = await fetcher(url, { ...init, redirect: "manual", signal });
    const body = response.body === null
      ? new Uint8Array()
      : await readBounded(response.body, MAX_ANSWER_BYTES, () =>
        new MillraceError("too_large", "the device's response is too large"));
    return { status: response.status, text: new TextDecoder().decode(body) };
  } catch (cause) {
    if (signal.aborted) throw abortError(signal);
    if (cause instanceof MillraceError) throw cause;
    throw new MillraceError("connection_failed", `the device at ${url.host} does not respond`, { cause });
  }
}
