/** The rules for imports between the parts of `src`, and for its use of the runtime. */
import path from "node:path";
import type { SourceFile } from "./files.ts";
import { tokenize } from "./lexer.ts";

/** What each part may import directly; it may import whatever those may, too. Everything may import `BASE`. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  engine: [
    "inputs",
    "http",
    "playback",
    "recordings",
    "players",
    "playlist",
    "account",
    "content",
    "live",
    "swarm",
    "discovery",
    "storage",
    "portmap",
    "egress",
  ],
  http: ["recordings", "playback", "content", "playlist", "players", "account", "metrics", "webui"],
  webui: [],
  metrics: [],
  recordings: ["playback"],
  playback: ["media", "swarm", "live", "content", "inputs"],
  players: ["upnp"],
  upnp: [],
  portmap: ["upnp", "discovery"],
  playlist: ["database", "metainfo", "discovery"],
  account: ["database", "metainfo", "discovery"],
  content: ["database", "metainfo", "discovery"],
  media: [],
  inputs: ["live", "media", "content"],
  live: ["wire", "metainfo", "swarm"],
  swarm: ["wire", "utp", "storage", "metainfo", "discovery"],
  discovery: ["metainfo"],
  egress: ["discovery"],
  wire: [],
  utp: [],
  storage: [],
  metainfo: [],
  database: [],
};

/** The parts on which all others are built. Each may import only those before it. */
const BASE = ["errors", "ports", "version", "bytes", "config"];

/** Files directly in `src` that belong to a part with another name. */
const ROOT_FILES: Readonly<Record<string, string>> = { mod: "engine" };

/** Globals that no file in `src` may use, because they would tie it to one runtime. */
const FORBIDDEN = /(?<![.\w$#])(Deno|Bun|process|Buffer)\b(?!\s*:)/g;

/** The faults of `files`, one per line. */
export function importFaults(files: readonly SourceFile[]): string[] {
  const faults: string[] = [];
  const graph = new Map<string, string[]>();
  for (const file of files) {
    const targets: string[] = [];
    for (const { specifier, line } of importsOf(file.text)) {
      const fault = specifierFault(file.path, specifier);
      if (fault !== null) faults.push(`${file.path}:${line}: ${fault}`);
      if (specifier.startsWith(".")) targets.push(path.posix.join(path.posix.dirname(file.path), specifier));
    }
    if (file.path.startsWith("src/")) {
      for (const { name, line } of forbiddenNames(file.text)) {
        faults.push(`${file.path}:${line}: uses ${name}; src/ has web-standard globals and its ports only`);
      }
    }
    graph.set(file.path, targets);
  }
  return [...faults, ...cycles(graph)];
}

/** Specifiers that `source` imports or re-exports, including types. */
export function importsOf(source: string): { specifier: string; line: number }[] {
  const found: { specifier: string; line: number }[] = [];
  const tokens = tokenize(source).filter(({ kind }) => kind !== "comment");
  tokens.forEach((token, i) => {
    if (token.kind !== "string" || !/^["']/.test(token.text)) return;
    const before = tokens[i - 1]?.kind === "code" ? tokens[i - 1]!.text : "";
    if (/(?:\bfrom|\bimport)\s*$|\bimport\s*\(\s*$/.test(before)) {
      found.push({ specifier: token.text.slice(1, -1), line: token.line });
    }
  });
  return found;
}

function forbiddenNames(source: string): { name: string; line: number }[] {
  const found: { name: string; line: number }[] = [];
  for (const token of tokenize(source)) {
    if (token.kind !== "code") continue;
    for (const match of token.text.matchAll(FORBIDDEN)) {
      found.push({ name: match[1]!, line: token.line + token.text.slice(0, match.index).split("\n").length - 1 });
    }
  }
  return found;
}

function specifierFault(from: string, specifier: string): string | null {
  if (!from.startsWith("src/")) return null;
  if (/^(?:node|bun|deno):/.test(specifier)) return `imports ${specifier}; that belongs in platform/`;
  if (!specifier.startsWith(".")) return null;
  const target = path.posix.join(path.posix.dirname(from), specifier);
  if (!target.startsWith("src/")) return `imports ${target} from outside src/`;
  const [importer, imported] = [partOf(from), partOf(target)];
  if (importer === imported || imported === "version") return null;
  const rank = BASE.indexOf(imported);
  if (BASE.includes(importer)) {
    return rank >= 0 && rank < BASE.indexOf(importer) ? null : `${importer} must not import ${imported}`;
  }
  if (!(importer in MAY_IMPORT)) return `src/${importer} has no place in the order of imports`;
  if (rank >= 0 || reachable(importer).has(imported)) return null;
  return `${importer} must not import ${imported}`;
}

/** The part of `src` that a file belongs to: its folder, or its name if it is directly in `src`. */
function partOf(file: string): string {
  const name = file.split("/")[1]!.replace(/\.tsx?$/, "");
  return ROOT_FILES[name] ?? name;
}

function reachable(part: string, seen = new Set<string>()): Set<string> {
  for (const next of MAY_IMPORT[part] ?? []) {
    if (seen.has(next)) continue;
    seen.add(next);
    reachable(next, seen);
  }
  return seen;
}

/** Every cycle of files, once. */
function cycles(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const faults: string[] = [];
  const state = new Map<string, "open" | "done">();
  const stack: string[] = [];
  const visit = (file: string) => {
    state.set(file, "open");
    stack.push(file);
    for (const target of graph.get(file) ?? []) {
      if (state.get(target) === "open") {
        faults.push(`import cycle: ${[...stack.slice(stack.indexOf(target)), target].join(" → ")}`);
      } else if (!state.has(target) && graph.has(target)) visit(target);
    }
    stack.pop();
    state.set(file, "done");
  };
  for (const file of graph.keys()) if (!state.has(file)) visit(file);
  return faults;
}
