/** Where the front of an HDHomeRun tuner is. */

/** Paths of the front, for the checks that they pass. */
export const HDHOMERUN_PATHS = [
  "/discover.json",
  "/lineup.json",
  "/lineup_status.json",
  "/lineup.post",
  "/device.xml",
  "/auto/*",
] as const;
