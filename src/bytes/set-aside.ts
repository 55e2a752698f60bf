/** Sets aside files of the engine that turn out to be damaged. */
import { toHex } from "./hex.ts";
import type { Clock, FilePort } from "../ports.ts";

/**
 * Renames `path`, a file or a directory, to `<path>.damaged-<time>-<random>`, where it stays for the user. Returns the
 * new path. Rejects as `FilePort.rename`, with `not_found` where there is nothing.
 */
export async function setAside(files: FilePort, clock: Pick<Clock, "now">, path: string): Promise<string> {
  const time = new Date(clock.now()).toISOString().replace(/[-:]/g, "").replace(".", "-");
  const aside = `${path}.damaged-${time}-${toHex(crypto.getRandomValues(new Uint8Array(2)))}`;
  await files.rename(path, aside);
  return aside;
}
