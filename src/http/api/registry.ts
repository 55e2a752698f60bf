/** All methods of the JSON API. */
import type { Method } from "./method.ts";
import { ACCESS_METHODS } from "./methods/access.ts";
import { STATUS_METHODS } from "./methods/status.ts";

/** In the order of section 4.4. */
export const METHODS: readonly Method[] = [...ACCESS_METHODS, ...STATUS_METHODS];
