/** Checks that every link between the project's pages leads somewhere. */
import path from "node:path";
import type { SourceFile } from "./files.ts";

/** Inline links in Markdown; those in code don't count. */
const LINK = /\]\(([^()\s]+)\)/g;
const CODE = /```[\s\S]*?```|`[^`\n]*`/g;

/** The anchors of a page's headings, as GitHub makes them: lower case, no punctuation, hyphens for spaces, numbers for repetitions. */
function anchorsOf(text: string): ReadonlySet<string> {
  const seen = new Map<string, number>();
  const anchors = new Set<string>();
  for (const [, heading] of text.replace(/```[\s\S]*?```/g, "").matchAll(/^#{1,6} +(.+)$/gm)) {
    const words = heading!.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").trim().toLowerCase();
    const slug = words.replace(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");
    const count = seen.get(slug) ?? 0;
    seen.set(slug, count + 1);
    anchors.add(count === 0 ? slug : `${slug}-${count}`);
  }
  return anchors;
}

/**
 * Links of `pages` that lead to no file of the project or to no heading of a page, one line each. Web addresses are not
 * checked. `exists` says whether a path relative to the project exists.
 */
export function linkFaults(pages: readonly SourceFile[], exists: (path: string) => boolean): string[] {
  const anchors = new Map(pages.map((page) => [page.path, anchorsOf(page.text)]));
  const faults: string[] = [];
  for (const page of pages) {
    for (const [, link] of page.text.replace(CODE, "").matchAll(LINK)) {
      if (/^[a-z][a-z0-9+.-]*:/i.test(link!)) continue;
      const [file = "", anchor] = link!.split("#");
      const target = file === ""
        ? page.path
        : path.posix.normalize(path.posix.join(path.posix.dirname(page.path), file));
      const known = anchors.get(target);
      const isFound = exists(target) && (anchor === undefined || known === undefined || known.has(anchor));
      if (!isFound) faults.push(`${page.path}: ${link} leads nowhere`);
    }
  }
  return faults;
}
