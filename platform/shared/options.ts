/** Options that every platform's `createPorts` takes. */
import type { LogLevel } from "../../src/ports.ts";

/** How the ports of a platform behave where the caller has a choice. */
export interface PlatformOptions {
  readonly log?: {
    /** Least severe level written. Default `info`. */
    readonly level?: LogLevel;
    /** Default `text`. */
    readonly format?: "text" | "json";
  };
}
