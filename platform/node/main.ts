/** Entry point on Node. */
import process from "node:process";
import { main } from "../main.ts";
import { keepHeapSmall } from "./heap.ts";
import { createPorts } from "./ports.ts";

keepHeapSmall();
await main({ createPorts, self: [process.execPath, ...process.execArgv, process.argv[1]!] });
