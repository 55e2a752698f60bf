/** Measures work instead of time: other programs on the machine make a test longer, but hardly its work. */
import process from "node:process";

/** Processor time that this thread has used so far, ms. */
export function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
