/**
 * Facts about a picture that the container states and MPEG TS has no place for. They are reported in `stat`, because
 * they would be lost silently.
 */
import type { Track } from "../model/types.ts";

/** Notes on a video track that the output carries. */
export function pictureNotes({ id, rotationDegrees, dolbyVision }: Track): string[] {
  const notes: string[] = [];
  if (rotationDegrees) {
    notes.push(`video track ${id} is to be turned by ${rotationDegrees}° clockwise, which MPEG TS cannot say`);
  }
  if (dolbyVision?.compatibility === 0) {
    notes.push(
      `video track ${id} is Dolby Vision profile ${dolbyVision.profile}: its colours are wrong on other displays`,
    );
  }
  return notes;
}
