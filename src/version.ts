/** The engine's version, section 2.4 of the HTTP API. */

/** Human-readable version, as `major.minor.patch`. */
export const VERSION: string = "0.1.0";

/** Machine-readable version: major · 1 000 000 + minor · 1000 + patch. */
export const VERSION_CODE: number = VERSION.split(".").reduce((code, part) => code * 1000 + Number(part), 0);
