/** The clip that the demo plays: 10 s of test picture and tone, H.264 and AAC. The build replaces this module by one with the bytes. */
import { readFile } from "node:fs/promises";

/** The clip's bytes, MP4. */
export async function loadClip(): Promise<Uint8Array> {
  return new Uint8Array(await readFile(new URL("./clip.mp4", import.meta.url)));
}
