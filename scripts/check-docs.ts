/**
 * Fails when an exported symbol of `src` has no doc comment, a link between pages leads nowhere, wording is refused, a
 * sentence of a page is too long, or a table generated from code is stale; `--write` renews those tables.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { stateTable } from "../platform/state-layout.ts";
import { optionsTable } from "../src/config.ts";
import { methodMarkdown } from "../src/http/api/method-table.ts";
import { METHODS } from "../src/http/api/registry.ts";
import { playbackMarkdown } from "../src/http/playback-schema.ts";
import { docFaults, withTable, wordingFaults } from "./support/doc-rules.ts";
import { readPages, readSources, ROOT } from "./support/files.ts";
import { linkFaults } from "./support/link-rules.ts";
import { sentenceFaults } from "./support/page-rules.ts";

const files = [...readSources("src"), ...readSources("platform")];
/** The rules themselves contain what they refuse, and fixtures are bytes. */
const worded = [...files, ...readSources("scripts"), ...readSources("test"), ...readPages()]
  .filter(({ path }) =>
    !path.startsWith("test/fixtures/") && !path.endsWith(".generated.ts") &&
    !["scripts/support/doc-rules.ts", "test/scripts/doc_rules_test.ts"].includes(path)
  );
const faults = [
  ...docFaults(files),
  ...wordingFaults(worded),
  ...linkFaults(readPages(), (file) => existsSync(path.join(ROOT, file))),
  ...sentenceFaults(readPages()),
];
/** Tables generated from code, by the page that shows them. */
const TABLES = [
  ["platform/README.md", "options", optionsTable()],
  ["platform/README.md", "state", stateTable()],
  ["src/http/README.md", "methods", methodMarkdown(METHODS)],
  ["src/http/README.md", "playback-parameters", playbackMarkdown()],
] as const;

for (const [page, name, table] of TABLES) {
  const file = path.join(ROOT, page);
  const text = readFileSync(file, "utf8");
  const renewed = withTable(text, name, table);
  if (renewed === null) faults.push(`${page}: no place for the ${name}: <!-- ${name} --> … <!-- /${name} -->`);
  else if (renewed !== text && process.argv.includes("--write")) writeFileSync(file, renewed);
  else if (renewed !== text) faults.push(`${page}: the table of ${name} is stale; run scripts/check-docs.ts --write`);
}
for (const fault of faults) console.error(fault);
console.log(`docs: ${files.length} files, ${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
