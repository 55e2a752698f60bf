/**
 * Fails when `src` uses a runtime directly, when a folder imports one above it, when files import in a circle, when two
 * files of `src` export a type of the same name, or when a member of a class is private by the keyword instead of `#name`.
 */
import process from "node:process";
import { readSources } from "./support/files.ts";
import { importFaults } from "./support/import-rules.ts";
import { nameFaults } from "./support/name-rules.ts";
import { styleFaults } from "./support/style-rules.ts";

const files = [...readSources("src"), ...readSources("platform")];
const faults = [
  ...importFaults(files),
  ...nameFaults(readSources("src")),
  ...styleFaults([...files, ...readSources("scripts")]),
];
for (const fault of faults) console.error(fault);
console.log(`imports: ${files.length} files, ${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
