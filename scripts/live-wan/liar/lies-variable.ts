/** The environment variable that tells a lying engine how to lie, a `LiarKind`. */
export const LIES_VARIABLE = "LIVE_WAN_LIES";
