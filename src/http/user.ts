/** Whether a request is the user's own. */
import type { AccessToken } from "../account/access-token.ts";
import type { Devices } from "../account/devices.ts";
import type { RequestCaller } from "./request-caller.ts";

/** The tokens by which the user is known on other machines. */
export interface UserTokens {
  readonly token: Pick<AccessToken, "refresh" | "matches">;
  readonly devices: Pick<Devices, "holds">;
}

/** Whether `given` is the access token as it is now, or a device's. */
export async function isUserToken({ token, devices }: UserTokens, given: string): Promise<boolean> {
  await token.refresh();
  return token.matches(given) || await devices.holds(given);
}

/** True for callers on this machine, and for those elsewhere who have the access token. */
export async function isUser(
  { isLocal, page }: Pick<RequestCaller, "isLocal" | "page">,
  tokens: UserTokens,
  given: string | undefined,
): Promise<boolean> {
  if (isLocal) return true;
  // A page of another origin opens nothing of the user's, even with the token.
  if (given === undefined || given === "" || page.relation === "foreign") return false;
  return await isUserToken(tokens, given);
}
