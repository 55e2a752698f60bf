/** Fails when an exported symbol of `src` has no doc comment or the README's tables are stale; `--write` renews those. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { optionsTable } from "../src/config.ts";
import { methodMarkdown } from "../src/http/api/method-table.ts";
import { METHODS } from "../src/http/api/registry.ts";
import { docFaults, withTable } from "./support/doc-rules.ts";
import { readSources, ROOT } from "./support/files.ts";

const files = [...readSources("src"), ...readSources("platform")];
const faults = docFaults(files);
const readmePath = path.join(ROOT, "README.md");
const readme = existsSync(readmePath) ? readFileSync(readmePath, "utf8") : "";
let wanted = readme;
for (const [name, table] of [["options", optionsTable()], ["methods", methodMarkdown(METHODS)]] as const) {
  const renewed = withTable(wanted, name, table);
  if (renewed === null) faults.push(`README.md: no place for the ${name}: <!-- ${name} --> … <!-- /${name} -->`);
  wanted = renewed ?? wanted;
}
if (wanted !== readme && process.argv.includes("--write")) writeFileSync(readmePath, wanted);
else if (wanted !== readme) faults.push("README.md: a table is stale; run scripts/check-docs.ts --write");
for (const fault of faults) console.error(fault);
console.log(`docs: ${files.length} files, ${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
