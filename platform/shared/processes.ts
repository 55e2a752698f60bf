/** Child processes on node:child_process, which all three runtimes have. */
import { type ChildProcess as NodeChild, spawn } from "node:child_process";
import os from "node:os";
import process from "node:process";
import { MillraceError } from "../../src/errors.ts";
import type { ChildProcess, ProcessPort } from "../../src/ports.ts";
import { webReadable, webWritable } from "./node-streams.ts";

/** Errors that say nothing about the program: too many processes or open files, or too little memory. */
const NO_ROOM: ReadonlySet<string> = new Set(["EAGAIN", "ENOMEM", "EMFILE", "ENFILE"]);

/** Child processes of this machine. */
export const processes: ProcessPort = {
  spawn(command, args, options = {}) {
    return new Promise((resolve, reject) => {
      const fail = (cause: unknown) => {
        const isFull = NO_ROOM.has((cause as { code?: string }).code ?? "");
        const error = isFull
          ? new MillraceError("too_busy", `cannot start ${command}: the machine has no room for another program`, {
            cause,
          })
          : new MillraceError("unavailable", `cannot start ${command}: is it installed?`, { cause });
        reject(error);
      };
      let child: NodeChild;
      try {
        child = spawn(command, args, {
          stdio: ["pipe", "pipe", "pipe"],
          windowsHide: true,
          ...(options.env && { env: { ...process.env, ...options.env } }),
        });
      } catch (cause) {
        return fail(cause);
      }
      child.once("error", fail);
      child.once("spawn", () => {
        child.off("error", fail);
        child.on("error", () => {});
        resolve(wrap(child));
      });
    });
  },
};

function wrap(child: NodeChild): ChildProcess {
  let running = true;
  const exited = new Promise<number>((resolve) => {
    child.once("exit", (code, signal) => {
      running = false;
      resolve(code ?? 128 + (signal === null ? 0 : os.constants.signals[signal]));
    });
  });
  return {
    pid: child.pid!,
    stdin: webWritable(child.stdin!),
    stdout: webReadable(child.stdout!),
    stderr: webReadable(child.stderr!),
    exited,
    kill(signal = "SIGTERM") {
      // Not child.kill(): after it Deno reports death by that signal even when the child exited by itself.
      try {
        if (running) process.kill(child.pid!, signal);
      } catch {
        // The child ended in the meantime.
      }
    },
  };
}
