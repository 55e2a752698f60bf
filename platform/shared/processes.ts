/** Child processes on node:child_process, which all three runtimes have. */
import { type ChildProcess as NodeChild, spawn } from "node:child_process";
import os from "node:os";
import process from "node:process";
import { MillraceError } from "../../src/errors.ts";
import type { ChildProcess, ProcessPort } from "../../src/ports.ts";
import { webReadable, webWritable } from "./node-streams.ts";

/** Child processes of this machine. */
export const processes: ProcessPort = {
  spawn(command, args, options = {}) {
    return new Promise((resolve, reject) => {
      const fail = (cause: unknown) =>
        reject(new MillraceError("unavailable", `cannot start ${command}: is it installed?`, { cause }));
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
