/** Keeps two programs from using one directory at once. */
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
/** For whoever holds the lock to answer, ms. */
const ANSWER_MS = 2000;
/** What connecting says where a socket's process is gone. Others come from a live one: Bun reports its reset first. */
const GONE = new Set(["ECONNREFUSED", "ENOENT", "ENOTSOCK"]);
/**
 * Bun tells a live one whose queue of connections is full as refused, where others say EAGAIN: so often it is asked
 * before it is taken for gone, with so many ms in between, in which it takes what is queued.
 */
const ASK_TIMES = runtimeName() === "bun" ? 10 : 1;
const ASK_AGAIN_MS = 20;

/**
 * Takes `directory`, which exists, until the returned function is called or the process ends, however that happens: the
 * lock is a local socket, which nobody listens on any more then. Rejects with `config` and the text `taken` when another
 * process, or this one, has it.
 */
export async function lockDirectory(directory: string, taken: string): Promise<() => void> {
  const held = await heldIn(directory, taken);
  return () => void held.close();
}

/** The socket lies in the directory, so that what a killed process leaves of it is found by the next, or goes with that. */
async function heldIn(directory: string, taken: string): Promise<net.Server> {
  const inside = path.join(directory, "lock");
  if (process.platform !== "win32" && Buffer.byteLength(inside) <= MAX_SOCKET_PATH_BYTES) {
    try {
      return await hold(inside, taken);
    } catch (error) {
      // Some file systems hold no sockets: nobody on this machine gets one there.
      if (!(error instanceof CannotListen)) throw error;
    }
  }
  const name = `millrace-${createHash("sha256").update(directory).digest("hex").slice(0, 24)}`;
  const elsewhere = process.platform === "win32" ? `\\\\.\\pipe\\${name}` : path.join(os.tmpdir(), `${name}.lock`);
  return await hold(elsewhere, taken);
}

/** No socket can be made at the address. */
class CannotListen extends MillraceError {}

async function hold(address: string, taken: string): Promise<net.Server> {
  let server = await listen(address);
  if (server === null) {
    if (await isAlive(address)) throw new MillraceError("config", taken);
    await unlink(address).catch(() => {});
    server = await listen(address);
  }
  // Another was faster.
  if (server === null) throw new MillraceError("config", taken);
  return server;
}

/** null when the address is taken, by a socket or by what is left of one. Rejects with `CannotListen`. */
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
    // One that takes no connection in this time is there all the same.
    const timer = setTimeout(() => answer(true), ANSWER_MS);
    connection.once("connect", () => answer(true));
    connection.once("error", ({ code }: Error & { code?: string }) => answer(!GONE.has(code ?? "")));
  });
}
