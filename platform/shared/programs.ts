/** Finds programs as a shell would. */
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import path from "node:path";
import process from "node:process";
import type { ProgramPort } from "../../src/ports.ts";

/** Endings that Windows adds to a name when `PATHEXT` is not set. */
const WINDOWS_EXTENSIONS = ".COM;.EXE;.BAT;.CMD";

/** Programs of this machine. */
export const programs: ProgramPort = {
  async find(command) {
    const isPath = command.includes("/") || command.includes(path.sep);
    const folders = isPath ? [""] : (process.env["PATH"] ?? "").split(path.delimiter).filter((folder) => folder !== "");
    const extensions = process.platform === "win32"
      ? ["", ...(process.env["PATHEXT"] ?? WINDOWS_EXTENSIONS).split(";")]
      : [""];
    for (const folder of folders) {
      for (const extension of extensions) {
        const file = path.resolve(folder, command + extension);
        if (await isProgram(file)) return file;
      }
    }
    return null;
  },

  hasDesktop() {
    if (process.platform === "win32" || process.platform === "darwin") return true;
    return Boolean(process.env["WAYLAND_DISPLAY"] || process.env["DISPLAY"]);
  },
};

async function isProgram(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}
