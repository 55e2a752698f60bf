/** Fails when a regular expression of `src` or `platform` can take more than linear time. */
import process from "node:process";
import { readSources } from "./support/files.ts";
import { regexFaults } from "./support/regex-rules.ts";

// To the lexer JSX looks like regular expressions, so files with JSX may contain none: the web page keeps its own in
// naming.ts.
const files = [...readSources("src"), ...readSources("platform")].filter(({ path }) => !path.endsWith(".tsx"));
const { literals, faults } = regexFaults(files);
for (const fault of faults) console.error(fault);
console.log(`regular expressions: ${literals}, ${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
