/** Fields that DLNA devices ask for when they read media (DLNA guidelines, part 1-1, 7.4). */
import { contentFeatures } from "../upnp/dlna.ts";

const FEATURES_WANTED = "getcontentfeatures.dlna.org";
const TRANSFER_MODE = "transfermode.dlna.org";
const TIME_SEEK = "timeseekrange.dlna.org";

/** Adds what the request asked for; other clients get nothing. */
export function addDlnaFields(request: Headers, response: Headers, hasRanges: boolean): void {
  if (request.get(FEATURES_WANTED) === "1") response.set("contentFeatures.dlna.org", contentFeatures(hasRanges));
  const mode = request.get(TRANSFER_MODE);
  // Media that plays is never for "Interactive" transfer.
  if (mode !== null) response.set("transferMode.dlna.org", /^background$/i.test(mode) ? "Background" : "Streaming");
}

/** Whether the request asks for a range of times, of which `DLNA.ORG_OP` says that there are none. The whole is no range. */
export function wantsTimes(request: Headers): boolean {
  const range = request.get(TIME_SEEK);
  return range !== null && !/^npt=0*(?::0+)*(?:\.0*)?-$/.test(range.replaceAll(" ", ""));
}
