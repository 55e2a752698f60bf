/** Entry point on Bun. */
import process from "node:process";
import { main } from "../main.ts";
import { createPorts } from "./ports.ts";

/** In a compiled program the script has a path inside the executable, which contains one of these. */
const compiled = import.meta.url.includes("$bunfs") || import.meta.url.includes("~BUN");
await main({ createPorts, self: compiled ? [process.execPath] : [process.execPath, process.argv[1]!] });
