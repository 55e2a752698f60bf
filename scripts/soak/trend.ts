/** Fits a straight line to samples: how fast a figure grows. */

/** A measured value. */
export interface Point {
  /** Seconds since any fixed moment. */
  readonly atS: number;
  readonly value: number;
}

/** How a figure changes. */
export interface Trend {
  readonly perHour: number;
  /**
   * Standard error of `perHour`, by the scatter around the line. Samples in a row resemble each other, so the true error is
   * larger. A slope below twice this is no growth.
   */
  readonly errorPerHour: number;
}

const SECONDS_PER_HOUR = 3600;

/** The line of least squares; null with fewer than three points, or when all have the same time. */
export function trendOf(points: readonly Point[]): Trend | null {
  const count = points.length;
  if (count < 3) return null;
  const meanS = sumOf(points, ({ atS }) => atS) / count;
  const mean = sumOf(points, ({ value }) => value) / count;
  const spread = sumOf(points, ({ atS }) => (atS - meanS) ** 2);
  if (spread === 0) return null;
  const perS = sumOf(points, ({ atS, value }) => (atS - meanS) * (value - mean)) / spread;
  const scatter = sumOf(points, ({ atS, value }) => (value - mean - perS * (atS - meanS)) ** 2);
  const errorPerS = Math.sqrt(scatter / (count - 2) / spread);
  return { perHour: perS * SECONDS_PER_HOUR, errorPerHour: errorPerS * SECONDS_PER_HOUR };
}

function sumOf(points: readonly Point[], read: (point: Point) => number): number {
  return points.reduce((sum, point) => sum + read(point), 0);
}
