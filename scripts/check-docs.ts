/** Fails when an exported symbol of `src` has no doc comment or the README's options are stale; `--write` renews those. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { optionsTable } from "../src/config.ts";
import { docFaults, withOptions } from "./support/doc-rules.ts";
import { readSources, ROOT } from "./support/files.ts";

const files = [...readSources("src"), ...readSources("platform")];
const faults = docFaults(files);
const readmePath = path.join(ROOT, "README.md");
const readme = existsSync(readmePath) ? readFileSync(readmePath, "utf8") : "";
const wanted = withOptions(readme, optionsTable());
if (wanted === null) faults.push("README.md: no place for the options: <!-- options --> … <!-- /options -->");
else if (wanted !== readme && process.argv.includes("--write")) writeFileSync(readmePath, wanted);
else if (wanted !== readme) faults.push("README.md: the table of options is stale; run scripts/check-docs.ts --write");
for (const fault of faults) console.error(fault);
console.log(`docs: ${files.length} files, ${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
