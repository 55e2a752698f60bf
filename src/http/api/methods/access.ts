/** Tokens and who may call: "Access and status" of section 4.4, section 5. */
import { z } from "zod";
import { defineMethod, type Method } from "../method.ts";
import { NONE } from "../schemas.ts";

/** See the module. */
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
];
