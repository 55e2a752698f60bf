/**
 * Installs a Debian package in a bare root of Debian 12 or newer and has it work there, with nothing of this folder and under
 * the restrictions of its unit that need no systemd: `test-debian.ts PACKAGE.deb ROOT.tar`. The root is what
 * `mmdebstrap --variant=minbase bookworm ROOT.tar` makes. Needs root, bubblewrap and Debian's servers; for another
 * architecture than this machine's qemu-user-static.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { exit } from "./support/runtimes.ts";
import { type Form, playsDemo, serves } from "./support/smoke.ts";

const [deb, tar] = process.argv.slice(2).map((file) => path.resolve(file));
if (deb === undefined || tar === undefined) throw new Error("usage: test-debian.ts PACKAGE.deb ROOT.tar");

function must(command: string, ...args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: "utf8", maxBuffer: 1 << 26 });
  if (status !== 0) {
    throw new Error(`${command} ${args.join(" ")}: ${error?.message ?? `${status}\n${stdout}${stderr}`}`);
  }
  return stdout;
}

const work = mkdtempSync(path.join(os.tmpdir(), "millrace-root-"));
try {
  const root = path.join(work, "root");
  mkdirSync(root);
  must("tar", "-xf", tar, "-C", root);
  copyFileSync("/etc/resolv.conf", path.join(root, "etc", "resolv.conf"));
  copyFileSync(deb, path.join(root, "tmp", "millrace.deb"));
  const inside = (script: string) =>
    must(
      "bwrap",
      "--bind",
      root,
      "/",
      "--dev",
      "/dev",
      "--proc",
      "/proc",
      "--setenv",
      "DEBIAN_FRONTEND",
      "noninteractive",
      "sh",
      "-ec",
      script,
    );
  inside("apt-get -q update; apt-get -q install -y --no-install-recommends /tmp/millrace.deb; rm /tmp/millrace.deb");
  const [uid, gid] = inside("id -u millrace; id -g millrace").trim().split("\n");
  // What the unit asks of systemd: everything is read-only but one directory, no capability, no new privileges. bubblewrap
  // would stand between a signal and the program.
  const enter = [
    `mount --bind ${root} ${root}`,
    `mount -o remount,ro,bind ${root}`,
    `mount -t proc proc ${root}/proc`,
    `mount --bind /dev ${root}/dev`,
    `mount --bind ${os.tmpdir()} ${root}/tmp`,
    "export TMPDIR=/tmp HOME=/tmp",
    `exec chroot --userspec=${uid}:${gid} ${root} ` +
    `setpriv --no-new-privs --bounding-set=-all --inh-caps=-all /usr/bin/millrace "$@"`,
  ].join("; ");
  const form: Form = { command: ["unshare", "--mount", "sh", "-ec", enter, "sh"], cwd: "/" };
  console.log(inside("millrace --version").trim());
  await serves(form);
  console.log("serves, keeps an item, ends by SIGTERM: good");
  await playsDemo(form);
  console.log("plays a torrent as MPEG TS and HLS: good");
  inside("apt-get -q purge -y millrace; test ! -e /usr/lib/millrace; test ! -e /etc/millrace");
  console.log("is removed: good");
} finally {
  rmSync(work, { recursive: true, force: true });
}
exit(true);
