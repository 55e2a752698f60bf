/** Notices a listener that the runtime has stopped serving. */
import net from "node:net";
import { guarded } from "../../src/bytes/guarded-clock.ts";
import type { SocketAddress } from "../../src/ports.ts";

/** A server that accepted no connection for this long is tested, ms. */
const CHECK_MS = 2000;
/**
 * A connection that was not accepted after so many turns of this process, this far apart, never will be, ms. Time alone tells
 * nothing: a process that waited a second for a processor has accepted nothing in it, and will. They are counted from when our
 * end is connected, because busy runtimes go many turns without a look at their sockets.
 */
const ACCEPT_TURNS = 10;
/** One that is not connected after so many turns never will be: the kernel's queue is full. */
const CONNECT_TURNS = 100;
const TURN_MS = 100;

/**
 * Deno stops accepting for good when it runs out of descriptors for a moment: the listener stays open, no error is reported,
 * and clients wait in the kernel's queue. So whenever `accepted`, a count of the connections to `at`, did not grow for a
 * while, a connection of our own tests whether connections are still accepted; if not, `reopen` is called until they are.
 * Returns a function that ends the watch. `failed` takes a fault of ours in a check; the next one comes in time.
 */
export function watchListener(
  at: SocketAddress,
  accepted: () => number,
  reopen: () => void,
  failed: (error: unknown) => void = () => {},
): () => void {
  let seen = accepted();
  const check = guarded(() => {
    const now = accepted();
    if (now === seen) tryListener(at, () => accepted() > now, reopen, failed);
    seen = now;
  }, failed);
  const timer = setInterval(check, CHECK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** Connects; calls `onDead` when nothing listens there or `accepted` stays false. */
function tryListener(
  { host, port }: SocketAddress,
  accepted: () => boolean,
  onDead: () => void,
  failed: (error: unknown) => void,
): void {
  // "::" takes IPv4, too, and a machine may have IPv6 and yet no ::1.
  const probe = net.connect({ host: host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host, port });
  const finish = guarded((isDead: boolean) => {
    clearInterval(timer);
    probe.destroy();
    if (isDead) onDead();
  }, failed);
  let turnsLeft = CONNECT_TURNS;
  probe.once("connect", () => turnsLeft = ACCEPT_TURNS);
  const look = guarded(() => {
    if (accepted()) finish(false);
    else if (--turnsLeft === 0) finish(true);
  }, failed);
  const timer = setInterval(look, TURN_MS);
  // Any other error, such as having no free descriptor, says nothing about the listener.
  probe.on("error", (error: { code?: string }) => finish(error.code === "ECONNREFUSED"));
}
