/** Opens a container, or reads on in it, for as long as the swarm brings something. */
import { abortError, MillraceError } from "../errors.ts";
import type { Clock, Timer } from "../ports.ts";
import type { Swarm } from "../swarm/types.ts";
import { waitingFor } from "./waiting-for.ts";

/**
 * The result of `open`. Its signal fires with `start_timeout` when the swarm brought nothing for `silenceMs`, or with the
 * reason of `signal`.
 */
export async function openPatiently<T>(
  open: (signal: AbortSignal) => Promise<T>,
  swarm: Swarm,
  clock: Clock,
  silenceMs: number,
  signal: AbortSignal,
): Promise<T> {
  const giveUp = new AbortController();
  const stop = () => giveUp.abort(abortError(signal));
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  let timer: Timer | null = null;
  const watch = (before: number) => {
    timer = clock.setTimeout(() => {
      const { downloadedBytes, downloadBytesPerSecond } = swarm.status();
      if (downloadedBytes > before || downloadBytesPerSecond > 0) return watch(downloadedBytes);
      giveUp.abort(new MillraceError("start_timeout", `start timeout: ${waitingFor(swarm)}`));
    }, silenceMs);
  };
  watch(swarm.status().downloadedBytes);
  try {
    return await open(giveUp.signal);
  } finally {
    timer!.cancel();
    signal.removeEventListener("abort", stop);
  }
}
