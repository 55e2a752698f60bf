/** Fails when `src` uses a runtime directly, when a folder imports one above it, or when files import in a circle. */
import process from "node:process";
import { readSources } from "./support/files.ts";
import { importFaults } from "./support/import-rules.ts";

const files = [...readSources("src"), ...readSources("platform")];
const faults = importFaults(files);
for (const fault of faults) console.error(fault);
console.log(`imports: ${files.length} files, ${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
