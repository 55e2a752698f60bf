/** The lines of a script that are near the place that is shown. */

/** A line with its times, s. */
export interface ScriptLine {
  readonly startS: number;
  readonly endS: number;
  readonly line: string;
}

/**
 * Lines of a script that are there at once. A segment of the densest scripts has some thousands; libass looks at each of them
 * for each picture.
 */
export const MAX_LINES = 10_000;

const TIMES = /^Dialogue: -?\d+,(\d+):(\d\d):(\d\d\.\d\d),(\d+):(\d\d):(\d\d\.\d\d),/;

/** The lines of a file of a script. */
export function readLines(text: string): ScriptLine[] {
  return text.split("\n").flatMap((line) => {
    const [whole, ...times] = TIMES.exec(line) ?? [];
    if (whole === undefined) return [];
    const [h, m, s, endH, endM, endS] = times.map(Number) as [number, number, number, number, number, number];
    return [{ startS: 3600 * h + 60 * m + s, endS: 3600 * endH + 60 * endM + endS, line }];
  });
}

/**
 * The lines of `files`, and those of `before` that are shown at `timeS`: what began long ago is in no file that is near. `leftOut`
 * of them are too many.
 */
export function linesNow(
  files: readonly (readonly ScriptLine[])[],
  before: readonly ScriptLine[],
  timeS: number,
): { readonly lines: readonly ScriptLine[]; readonly leftOut: number } {
  const shown = before.filter(({ startS, endS }) => startS <= timeS && timeS < endS);
  const near = files.flat();
  const known = new Set(near.map(({ line }) => line));
  const all = [...shown.filter(({ line }) => !known.has(line)), ...near];
  return { lines: all.slice(0, MAX_LINES), leftOut: Math.max(0, all.length - MAX_LINES) };
}
