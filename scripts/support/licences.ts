/** The licences of packages that become part of what is released. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { ROOT } from "./files.ts";

/** Packages that `scripts/build-webui.ts` has put into the page's script or beside it, so that no bundler sees them. */
const IN_THE_PAGE = ["hls.js", "hono", "jassub", "uqr"];

/** Our own stand-ins. */
const OURS = "@std/";

/**
 * Text with name, version and licence of each package that files in `inputs` are part of, and of the page's packages.
 * `inputs` are relative to the project. A package without a file for its licence is listed with the name of it.
 */
export function licencesOf(inputs: Iterable<string>): string {
  const { resolve } = createRequire(import.meta.url);
  const files = [...inputs].map((file) => path.resolve(ROOT, file));
  const roots = new Set([...files, ...IN_THE_PAGE.map((name) => resolve(name))].map(packageRoot));
  return `Packages that are part of this program, and their licences.\n\n${
    textOf([...roots].filter((root) => root !== null))
  }`;
}

/** The same of the packages in the folders `roots`, without a title. */
export function textOf(roots: readonly string[]): string {
  const texts = new Map<string, string>();
  for (const root of roots) {
    const facts = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as Facts;
    if (!facts.name.startsWith(OURS)) texts.set(`${facts.name} ${facts.version}`, licenceText(root, facts));
  }
  const sorted = [...texts].sort(([one], [other]) => one < other ? -1 : 1);
  const line = "=".repeat(80);
  return sorted.map(([name, text]) => `${line}\n${name}\n${line}\n\n${text}`).join("\n\n") + "\n";
}

interface Facts {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly author?: string | { readonly name: string };
}

/** Folder of the package that contains `file`; null: it is part of this project. */
function packageRoot(file: string): string | null {
  const inPackage = /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(file);
  return inPackage === null ? null : inPackage[0];
}

function licenceText(root: string, { license, author, name }: Facts): string {
  const file = readdirSync(root).sort().find((name) => /^(?:licen[cs]e|copying)/i.test(name));
  if (file !== undefined && existsSync(path.join(root, file))) {
    return readFileSync(path.join(root, file), "utf8").replaceAll("\r\n", "\n").trim();
  }
  if (license === undefined) throw new Error(`${name} names no licence: find out, or do without it`);
  const who = typeof author === "string" ? author : author?.name;
  return `${license}${who === undefined ? "" : `, by ${who}`}. The package holds no text of it.`;
}
