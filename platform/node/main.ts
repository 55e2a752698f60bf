/** Entry point on Node. */
import process from "node:process";
import { main } from "../main.ts";
import { keepHeapSmall } from "./heap.ts";
import { createPorts } from "./ports.ts";

keepHeapSmall();

/** In an executable that contains the program, no script is named. Older releases of Node 20 can't tell. */
const script = process.getBuiltinModule?.("node:sea").isSea() === true ? [] : [process.argv[1]!];
await main({ createPorts, self: [process.execPath, ...process.execArgv, ...script] });
