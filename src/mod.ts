/** The public face for embedders: `createEngine(ports, options)` and what it needs. */
export { createEngine, type Engine, type EngineOptions } from "./engine.ts";
export { type ErrorCode, MillraceError } from "./errors.ts";
export type * from "./ports.ts";
export { VERSION, VERSION_CODE } from "./version.ts";
