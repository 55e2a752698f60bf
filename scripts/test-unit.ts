/**
 * Starts the unit of the Debian package by systemd itself, in a bare root: `test-unit.ts PACKAGE.deb ROOT.tar`, with a root as
 * `test-root.ts` takes it. systemd is the first process of namespaces of its own, so all restrictions of the unit hold, its
 * filter of system calls among them. Needs root and Debian's servers.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { exit, outputOf } from "./support/runtimes.ts";
import { ALONE } from "./support/smoke.ts";

/** Longest time that systemd takes to start, ms, and between two looks whether it has. */
const BOOT_MS = 60_000;
const LOOK_MS = 200;

const [deb, tar] = process.argv.slice(2).map((name) => path.resolve(name));
if (deb === undefined || tar === undefined) throw new Error("usage: test-unit.ts PACKAGE.deb ROOT.tar");

const work = mkdtempSync(path.join(os.tmpdir(), "millrace-unit-"));
const root = path.join(work, "root");

/** Not a chroot: a process in one may not make a namespace of users, which `PrivateUsers=` asks for. */
const BOOT = `
mount --bind ${root} ${root}
cd ${root}
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=755 tmpfs dev
for name in null zero full random urandom tty; do : >dev/$name; mount --bind /dev/$name dev/$name; done
mkdir dev/shm dev/pts dev/mqueue dev/hugepages
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ip link set lo up
mkdir -p run/old
pivot_root . run/old
umount -l /run/old
exec env -i container=millrace-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system
`;

/** The number of the first process in `child`'s namespaces. */
function firstOf(child: ChildProcess): string {
  return readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").trim();
}

/** Runs a command beside systemd; returns what it printed. */
function beside(child: ChildProcess, ...command: string[]): string {
  return outputOf("/", "nsenter", "--target", firstOf(child), "--all", "--", ...command);
}

async function booted(child: ChildProcess): Promise<void> {
  for (const until = performance.now() + BOOT_MS; performance.now() < until;) {
    try {
      beside(child, "systemctl", "is-active", "--quiet", "multi-user.target");
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }
  throw new Error("systemd did not start");
}

/** A unit with the same restrictions that runs the demo to its end. */
function demoUnit(unit: string, options: readonly string[]): string {
  return unit.replace(/^ExecStart=.*$/m, `ExecStart=/usr/bin/millrace demo --once ${[...options, ...ALONE].join(" ")}`)
    .replace(/^Type=.*$/m, "Type=oneshot").replace(/^Restart=.*$/m, "Restart=no");
}

const UNITS = "/etc/systemd/system";
const ASKS =
  `const get = async (path) => { const r = await fetch("http://127.0.0.1:6878" + path); return await r.text(); };
for (const until = Date.now() + 60000;;) {
  try { await get("/readyz"); break; } catch (error) { if (Date.now() > until) throw error; await new Promise((r) => setTimeout(r, 200)); }
}
const token = JSON.parse(await get("/server/api?method=get_api_access_token")).result.token;
const call = async (method) => JSON.stringify(JSON.parse(await get("/server/api?token=" + token + "&method=" + method)));
if (!(await get("/")).includes("<title>")) throw new Error("there is no page");
await call("playlist_add_item&title=smoke&infohash=" + "1".repeat(40));
if (!(await call("search&query=smoke")).includes("1".repeat(40))) throw new Error("the item is not found");`;

let systemd: ChildProcess | null = null;
try {
  mkdirSync(root);
  outputOf(work, "tar", "-xf", tar, "-C", root);
  copyFileSync("/etc/resolv.conf", path.join(root, "etc", "resolv.conf"));
  copyFileSync(deb, path.join(root, "tmp", "millrace.deb"));
  outputOf(
    work,
    ...["bwrap", "--bind", root, "/", "--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc"] as const,
    ...["--setenv", "DEBIAN_FRONTEND", "noninteractive", "sh", "-ec"],
    "apt-get -q update; apt-get -q install -y --no-install-recommends systemd systemd-sysv /tmp/millrace.deb",
  );
  const unit = readFileSync(path.join(root, "lib/systemd/system/millrace.service"), "utf8");
  writeFileSync(`${root}${UNITS}/demo.service`, demoUnit(unit, []));
  writeFileSync(`${root}${UNITS}/live.service`, demoUnit(unit, ["--live"]));
  systemd = spawn(
    "unshare",
    [..."--mount --pid --fork --uts --ipc --net --cgroup --kill-child=SIGKILL".split(" "), "sh", "-ec", BOOT],
    { stdio: "inherit" },
  );
  const child = systemd;
  await booted(child);
  try {
    beside(child, "systemctl", "start", "millrace");
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${beside(child, "journalctl", "--no-pager", "-n", "40")}`);
  }
  beside(child, "/usr/lib/millrace/node", "--input-type=module", "-e", ASKS);
  console.log("the service serves its page and its API, keeps an item: good");
  beside(child, "systemctl", "stop", "millrace");
  const ended = beside(child, "systemctl", "show", "millrace", "--property=Result,ExecMainStatus");
  if (!/Result=success\n/.test(ended) || !/ExecMainStatus=0\n/.test(ended)) throw new Error(`it ended by ${ended}`);
  console.log("the service ends by itself when it is stopped: good");
  for (const name of ["demo", "live"]) {
    try {
      beside(child, "systemctl", "start", name);
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${beside(child, "journalctl", "--no-pager", "-u", name)}`);
    }
    console.log(`${beside(child, "journalctl", "--no-pager", "-o", "cat", "-u", name)}${name}: good`);
  }
} finally {
  systemd?.kill("SIGKILL");
  rmSync(work, { recursive: true, force: true });
}
exit(true);
