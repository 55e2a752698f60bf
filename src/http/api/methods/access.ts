/** Tokens and who may call: "Access and status" of section 4.4, section 5. */
import * as z from "zod";
import { type ApiCall, type Method, methodsWith } from "../method.ts";
import { NONE, OK } from "../schemas.ts";

type Parts = "policy" | "settings" | "token";
const defineMethod = methodsWith<Parts>();

const VALUE = z.object({ value: z.boolean().describe("Whether to let them in") });

/** Stored first: a change confirmed with `ok` holds after a restart, too. */
async function allow({ parts }: ApiCall<Parts>, kind: "intranet" | "internet", value: boolean): Promise<"ok"> {
  await parts.settings.set(`allow_${kind}`, value);
  parts.policy.setAllowed(kind, value);
  return "ok";
}

/** The methods of access: the token, and who may call from elsewhere. */
export const ACCESS_METHODS: readonly Method[] = [
  defineMethod({
    name: "get_api_access_token",
    summary: "The token that private methods need.",
    public: true,
    remote: false,
    sameOriginOnly: true,
    params: NONE,
    result: z.object({ token: z.string().regex(/^[0-9a-f]{64}$/) }),
    handle: (_params, { parts }) => ({ token: parts.token.value }),
  }),
  defineMethod({
    name: "set_allow_remote_access",
    summary: "Allows or refuses callers from the Internet; kept over restarts.",
    public: false,
    remote: false,
    params: VALUE,
    result: OK,
    handle: ({ value }, call) => allow(call, "internet", value),
  }),
  defineMethod({
    name: "set_allow_intranet_access",
    summary: "Allows or refuses callers from the same subnet; kept over restarts.",
    public: false,
    remote: false,
    params: VALUE,
    result: OK,
    handle: ({ value }, call) => allow(call, "intranet", value),
  }),
];
