/** Whether a program of this machine is there, judged by a failed try to ask it for its version. */
import { hasCode } from "../../errors.ts";

/**
 * True for one that did not answer in time: on a busy machine a program that is there takes longer. Throws an error that
 * says nothing about the program, because the machine had no room to start it.
 */
export function isThereDespite(error: unknown): boolean {
  if (hasCode(error, "too_busy")) throw error;
  return hasCode(error, "timeout");
}
