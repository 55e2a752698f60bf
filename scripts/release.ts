/**
 * Makes all that a release publishes, in `dist/release`, with `SHA256SUMS`: the single file, the npm package, executables that
 * contain Bun or Node, and the Debian packages of `--debian` (amd64,arm64,armhf by default). Before that it checks that the
 * version is the same everywhere and that the changes of this version are described; after it, that the file and the npm
 * package do their work. Publishes nothing.
 *
 *   deno run -A scripts/release.ts [--debian amd64,arm64,armhf|none]
 */
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { VERSION } from "../src/version.ts";
import { ROOT } from "./support/files.ts";
import { changesOf, versionFaults } from "./support/release-rules.ts";
import { commandOf, exit, run } from "./support/runtimes.ts";

const { values: { debian } } = parseArgs({ options: { debian: { type: "string", default: "amd64,arm64,armhf" } } });
const DIST = path.join(ROOT, "dist");
const RELEASE = path.join(DIST, "release");
const deno = commandOf("deno");

function step(name: string, command: readonly string[], ...args: string[]): void {
  console.log(`== ${name}`);
  if (!run(command, args, ROOT)) throw new Error(`${name}: failed`);
}

const text = (file: string) => readFileSync(path.join(ROOT, file), "utf8");
const faults = versionFaults(VERSION, {
  "package.json": text("package.json"),
  "deno.json": text("deno.json"),
});
const changes = changesOf(VERSION, text(".github/CHANGELOG.md"));
if (changes === null) faults.push(`.github/CHANGELOG.md says nothing of ${VERSION}`);
if (faults.length > 0) throw new Error(faults.join("\n"));

const script = (name: string) => ["run", "-A", "-q", "--no-check", `scripts/${name}.ts`];
rmSync(RELEASE, { recursive: true, force: true });
mkdirSync(RELEASE, { recursive: true });
step("build", deno, ...script("build"), "--binaries");
step("npm package", deno, ...script("build-package"));
step("test of the file", deno, ...script("test-built"), "node");
step("test of the npm package", deno, ...script("test-package"));
const architectures = debian === "none" ? [] : debian.split(",");
if (architectures.length > 0) step("Debian packages", deno, ...script("build-debian"), ...architectures);
step("npm pack", ["npm"], "pack", "--silent", "--pack-destination", RELEASE, path.join(DIST, "npm"));
if (architectures.length > 0) step("bare roots", deno, ...script("test-roots"), ...architectures);
for (const name of readdirSync(DIST)) {
  if (/^(?:millrace[._-].*|libsql\.node|webrtc\.mjs|THIRD-PARTY\.txt|RUNTIMES\.txt)$/.test(name)) {
    copyFileSync(path.join(DIST, name), path.join(RELEASE, name));
  }
}
writeFileSync(path.join(RELEASE, "CHANGES.md"), changes!);
const sums = readdirSync(RELEASE).sort().map((name) =>
  `${createHash("sha256").update(readFileSync(path.join(RELEASE, name))).digest("hex")}  ${name}\n`
);
writeFileSync(path.join(RELEASE, "SHA256SUMS"), sums.join(""));
console.log(sums.join(""));
exit(true);
