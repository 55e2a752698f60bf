/** Reads what a test runner wrote about a run in the JUnit format, as far as the three runtimes agree on it. */
import path from "node:path";

/** The parts that matter: where a suite or a case begins, and that something failed. Texts inside are escaped. */
const TAGS = /<(testsuite|testcase|failure|error)\b([^>]*)>/g;
const NAME = /\bname="([^"]*)"/;
const FILE = /\bfile="([^"]*)"/;
/** Node says it at the case as well, where the text of the failure follows. */
const FAILURE = /\bfailure="/;

/**
 * The files of `files` that did not pass by the report `xml`: those with a failed test, and those that the report does not
 * name, since a file that cannot be loaded has no test there. Paths in both are absolute or relative to `root`.
 */
export function failedFiles(xml: string, files: readonly string[], root: string): string[] {
  const absolute = (file: string) => path.resolve(root, file);
  const passed = new Map<string, boolean>();
  let suite: string | null = null;
  let current: string | null = null;
  for (const [, tag, attributes] of xml.matchAll(TAGS)) {
    if (tag === "testsuite") {
      // Deno names the file as the suite's name, the others as an attribute of each case.
      suite = (FILE.exec(attributes!) ?? NAME.exec(attributes!))?.[1] ?? null;
    } else if (tag === "testcase") {
      current = FILE.exec(attributes!)?.[1] ?? suite;
      if (current !== null && !passed.has(absolute(current))) passed.set(absolute(current), true);
    }
    const hasFailed = tag === "failure" || tag === "error" || (tag === "testcase" && FAILURE.test(attributes!));
    if (hasFailed && current !== null) passed.set(absolute(current), false);
  }
  return files.filter((file) => passed.get(absolute(file)) !== true);
}
