/** Keeps two programs from using the same directory at once. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { unlink } from "node:fs/promises";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { MillraceError } from "../src/errors.ts";
import { runtimeName } from "./detect.ts";

/** Longest path of a socket, bytes: macOS has 103, Linux 107. */
const MAX_SOCKET_PATH_BYTES = 103;
/** How long the holder of the lock may take to answer, ms. */
const ANSWER_MS = 2000;
/** Errors of connecting to a socket whose process is gone. Other errors come from a live process: Bun may report its reset first. */
const GONE = new Set(["ECONNREFUSED", "ENOENT", "ENOTSOCK"]);
/**
 * Bun reports ECONNREFUSED for a live process whose queue of connections is full, where others report EAGAIN. So on Bun we
 * connect this many times before taking the process for gone, with a pause in ms in which it can empty its queue.
 */
const ASK_TIMES = runtimeName() === "bun" ? 10 : 1;
const ASK_AGAIN_MS = 20;

/**
 * Locks `directory`, which must exist, until the returned function is called or the process ends, however that happens: the
 * lock is a local socket, on which nobody listens after that. Rejects with `config` and the text `taken` when another
 * process, or this one, holds the lock.
 */
export async function lockDirectory(directory: string, taken: string): Promise<() => void> {
  const held = await heldIn(directory, taken);
  return () => void held.close();
}

/** Puts the socket into the directory, so that the next process finds what a killed one left, or it goes with the directory. */
async function heldIn(directory: string, taken: string): Promise<net.Server> {
  const inside = path.join(directory, "lock");
  if (process.platform !== "win32" && Buffer.byteLength(inside) <= MAX_SOCKET_PATH_BYTES) {
    try {
      return await hold(inside, taken);
    } catch (error) {
      // Some file systems do not support sockets; then all processes on this machine use the place below.
      if (!(error instanceof CannotListen)) throw error;
    }
  }
  const name = `millrace-${createHash("sha256").update(directory).digest("hex").slice(0, 24)}`;
  const elsewhere = process.platform === "win32" ? `\\\\.\\pipe\\${name}` : path.join(os.tmpdir(), `${name}.lock`);
  return await hold(elsewhere, taken);
}

/** Thrown when no socket can be made at the address. */
class CannotListen extends MillraceError {}

async function hold(address: string, taken: string): Promise<net.Server> {
  let server = await listen(address);
  if (server === null) {
    if (await isAlive(address)) throw new MillraceError("config", taken);
    await unlink(address).catch(() => {});
    server = await listen(address);
  }
  // Another process was faster.
  if (server === null) throw new MillraceError("config", taken);
  return server;
}

/** Listens at `address`; null when it is taken, by a live socket or the file of a dead one. Rejects with `CannotListen`. */
function listen(address: string): Promise<net.Server | null> {
  return new Promise((resolve, reject) => {
    const server = net.createServer((connection) => connection.destroy());
    server.once("error", (error: Error & { code?: string }) => {
      if (error.code === "EADDRINUSE") resolve(null);
      else reject(new CannotListen("config", `cannot make ${address} (${error.code ?? error.message})`));
    });
    server.listen(address, () => {
      server.unref();
      resolve(server);
    });
  });
}

async function isAlive(address: string): Promise<boolean> {
  for (let times = 1; !(await answers(address)); times++) {
    if (times >= ASK_TIMES) return false;
    await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
  }
  return true;
}

function answers(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = net.connect(address);
    const answer = (alive: boolean) => {
      clearTimeout(timer);
      connection.destroy();
      resolve(alive);
    };
    // A holder that is too busy to accept in this time still holds the lock.
    const timer = setTimeout(() => answer(true), ANSWER_MS);
    connection.once("connect", () => answer(true));
    connection.once("error", ({ code }: Error & { code?: string }) => answer(!GONE.has(code ?? "")));
  });
}
