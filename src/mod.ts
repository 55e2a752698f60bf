/** The public interface for embedders: `createEngine(ports, options)` and its types. */
export { createEngine, type Engine, type EngineOptions } from "./engine.ts";
export type { Broadcast, BroadcastOptions, BroadcastStatus, Relay } from "./live/broadcast/broadcast-types.ts";
export type { LiveInput, LiveInputEvent } from "./live/broadcast/input.ts";
export { type OpenedSource, openSource, type SourceOptions } from "./inputs/open-source.ts";
export { type ErrorCode, MillraceError } from "./errors.ts";
export type * from "./ports.ts";
export { VERSION, VERSION_CODE } from "./version.ts";
