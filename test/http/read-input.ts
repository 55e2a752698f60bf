/** Reading a call's parameters as a program of this machine sends them. */
import { type ApiInput, MAX_BODY_BYTES, queryFields, readInput } from "../../src/http/api/input.ts";
import { RequestAdmission } from "../../src/http/admission.ts";
import { OWN } from "../../src/bytes/shares.ts";
import type { Clock } from "../../src/ports.ts";

/** Query and body of `request`. */
export function readOwnInput(request: Request, clock: Clock): Promise<ApiInput> {
  const rules = { clock, maxBytes: MAX_BODY_BYTES, hold: new RequestAdmission().body(OWN) };
  return readInput(request, queryFields(request), rules);
}
