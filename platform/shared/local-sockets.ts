/** Unix domain sockets and named pipes on node:net, which all three runtimes have. */
import { mkdtemp, rm } from "node:fs/promises";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { abortError, MillraceError } from "../../src/errors.ts";
import type { LocalSocketPort } from "../../src/ports.ts";
import { webReadable, webWritable } from "./node-streams.ts";

/** Local sockets of this machine. */
export const localSockets: LocalSocketPort = {
  async newAddress() {
    if (process.platform === "win32") {
      return { path: `\\\\.\\pipe\\millrace-${crypto.randomUUID()}`, remove: () => Promise.resolve() };
    }
    try {
      // mkdtemp makes it with mode 700: users who cannot enter the directory cannot connect, whatever the mode of the socket.
      const directory = await mkdtemp(path.join(os.tmpdir(), "millrace-"));
      return {
        path: path.join(directory, "socket"),
        remove: () => rm(directory, { recursive: true, force: true }).catch(() => {}),
      };
    } catch (cause) {
      throw new MillraceError("io", "no directory for a socket can be made", { cause, detail: { path: os.tmpdir() } });
    }
  },

  connect(address, { signal }) {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(abortError(signal));
      const socket = net.connect({ path: address });
      const abort = () => {
        socket.destroy();
        reject(abortError(signal));
      };
      const fail = (cause: Error) => {
        signal.removeEventListener("abort", abort);
        socket.destroy();
        reject(new MillraceError("connection_failed", "nobody listens there", { cause, detail: { path: address } }));
      };
      signal.addEventListener("abort", abort, { once: true });
      socket.once("error", fail);
      socket.once("connect", () => {
        signal.removeEventListener("abort", abort);
        socket.off("error", fail);
        socket.on("error", () => {});
        resolve({ readable: webReadable(socket), writable: webWritable(socket), close: () => void socket.destroy() });
      });
    });
  },
};
