/** Loaded before a program: its wall clock is $CLOCK_OFF_S seconds ahead, or behind when that is negative. */
import process from "node:process";

const offMs = 1000 * Number(process.env.CLOCK_OFF_S);
if (!Number.isFinite(offMs)) throw new Error("CLOCK_OFF_S is not a number");
const right = Date.now;
Date.now = () => right() + offMs;
