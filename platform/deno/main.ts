/** Entry point on Deno. */
import process from "node:process";
import { main } from "../main.ts";
import { createPorts } from "./ports.ts";

const self = Deno.build.standalone ? [process.execPath] : [process.execPath, "run", "-A", process.argv[1]!];
await main({ createPorts, self });
