/** Whether a request is the user's own. */
import type { HttpContext, HttpParts } from "./context.ts";

/** True for callers on this machine, and for those elsewhere who have the access token. */
export async function isUser(
  c: HttpContext,
  { api: { token, devices } }: HttpParts,
  given: string | undefined,
): Promise<boolean> {
  const { isLocal, page } = c.get("caller");
  if (isLocal) return true;
  // A page of another origin opens nothing of the user's, even with the token.
  if (given === undefined || page.relation === "foreign") return false;
  await token.refresh();
  return token.matches(given) || await devices.holds(given);
}
