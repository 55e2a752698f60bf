/**
 * Has an artefact work in a bare root of Debian 12 or newer, with nothing of this folder in it: `test-root.ts ROOT.tar FILE
 * [RUNTIME…]`. FILE is a Debian package, an executable, or `millrace.mjs` or the package of npm with the executable of each
 * RUNTIME (`node`, `bun`, `deno`) that runs it. ROOT.tar is what `mmdebstrap --variant=minbase bookworm ROOT.tar` makes.
 *
 * The program runs as a user of its own, without capabilities, on a file system that is read-only but for
 * one directory. Needs root and
 * bubblewrap, and Debian's servers for a Debian package. For another kind of machine: `sh scripts/emulated.sh deno run -A …`.
 */
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { exit, outputOf } from "./support/runtimes.ts";
import { passes } from "./support/smoke.ts";

/** An emulated program takes this many times longer. */
const EMULATED = 8;
/** The user that runs what brings none of its own. */
const NOBODY = "65534:65534";

const [tar, file, ...runtimes] = process.argv.slice(2).map((name) => path.resolve(name));
if (tar === undefined || file === undefined) throw new Error("usage: test-root.ts ROOT.tar FILE [RUNTIME…]");

const work = mkdtempSync(path.join(os.tmpdir(), "millrace-root-"));
const root = path.join(work, "root");
/** The one place that the program may write to; it has this path inside the root, too. Not below /dev, which is this machine's. */
const temporary = mkdtempSync("/var/tmp/millrace-root-");
const form = { cwd: "/", env: { TMPDIR: temporary, HOME: temporary } };

/** Runs a script as root in the bare root; returns what it printed. */
function inside(script: string): string {
  return outputOf(
    work,
    ...["bwrap", "--bind", root, "/", "--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc"] as const,
    ...["--setenv", "DEBIAN_FRONTEND", "noninteractive", "sh", "-ec", script],
  );
}

/** Has `command` pass as `user`. bubblewrap would stand between a signal and the program, so it has no part in that. */
async function passesAs(user: string, command: string): Promise<void> {
  const enter = [
    `mount --bind ${root} ${root}`,
    `mount -o remount,ro,bind ${root}`,
    ...["/proc", "/dev"].map((name) => `mount --rbind ${name} ${root}${name}`),
    `mount --bind ${temporary} ${root}${temporary}`,
    `exec chroot --userspec=${user} ${root} setpriv --no-new-privs --bounding-set=-all --inh-caps=-all ${command} "$@"`,
  ].join("; ");
  const slowness = inside("uname -m") === outputOf(work, "uname", "-m") ? 1 : EMULATED;
  console.log(`${command}${slowness === 1 ? "" : ", emulated"}:`);
  await passes({ ...form, command: ["unshare", "--mount", "sh", "-ec", enter, "sh"], slowness });
}

async function debianPackagePasses(deb: string): Promise<void> {
  copyFileSync("/etc/resolv.conf", path.join(root, "etc", "resolv.conf"));
  copyFileSync(deb, path.join(root, "tmp", "millrace.deb"));
  inside("apt-get -q update; apt-get -q install -y --no-install-recommends /tmp/millrace.deb; rm /tmp/millrace.deb");
  console.log(inside("millrace --version").trim());
  await passesAs(inside("echo $(id -u millrace):$(id -g millrace)").trim(), "/usr/bin/millrace");
  inside("apt-get -q purge -y millrace; test ! -e /usr/lib/millrace; test ! -e /etc/millrace");
  console.log("is removed: good");
}

/** Copies `from` into the root, to be executed; returns its path there. */
function put(from: string): string {
  const to = `/opt/${path.basename(from)}`;
  copyFileSync(from, root + to);
  chmodSync(root + to, 0o755);
  return to;
}

/** The script of the package of npm that `tarball` is. */
function putPackage(tarball: string): string {
  const to = "/opt/node_modules/millrace";
  mkdirSync(root + to, { recursive: true });
  outputOf(work, "tar", "-xzf", tarball, "--strip-components=1", "--no-same-owner", "-C", root + to);
  return `${to}/millrace.js`;
}

try {
  mkdirSync(root);
  chmodSync(temporary, 0o1777);
  // Devices are this machine's, and cannot be made in a namespace of users.
  outputOf(work, "tar", "-xf", tar, "-C", root, "--exclude=./dev/*");
  for (const directory of [temporary, "/opt"]) mkdirSync(root + directory, { recursive: true });
  if (file.endsWith(".deb")) await debianPackagePasses(file);
  else if (runtimes.length === 0) await passesAs(NOBODY, put(file));
  else {
    const script = file.endsWith(".tgz") ? putPackage(file) : put(file);
    for (const runtime of runtimes) {
      const command = put(runtime);
      await passesAs(NOBODY, `${command}${command.endsWith("/deno") ? " run -A" : ""} ${script}`);
    }
  }
} finally {
  for (const directory of [work, temporary]) rmSync(directory, { recursive: true, force: true });
}
exit(true);
