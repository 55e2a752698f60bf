/** The user's account: `check_auth`, `sign_in`, `sign_out` of section 4.4. Separate from the access token (section 5.6). */
import * as z from "zod";
import type { Credentials } from "../../../account/sign-in.ts";
import { API_CODES, ApiError } from "../codes.ts";
import { type Method, methodsWith } from "../method.ts";
import { NONE, OK } from "../schemas.ts";

const defineMethod = methodsWith<"signIn">();

/** `method` for a user who signed in here, by password or through an identity provider. */
const OWN_AUTH = "millrace_auth" as const;
/** Levels: a user who is signed in, and nobody. */
const SIGNED_IN = 1;
const SIGNED_OUT = 0;

/** Section 2.10. There are no packages and nothing is sold: those fields say so. */
const AUTH_STATUS = z.object({
  package_name: z.string().nullable(),
  global_auth_level: z.int(),
  auth_level: z.int(),
  session_auth_level: z.int(),
  purse_amount: z.int().describe("-1 when signed out"),
  bonus_amount: z.int(),
  bonuses_updated_at: z.int(),
  package_color: z.int().describe("-1: there is no package"),
  package_days_left: z.int(),
  token: z.string().nullable().describe("Names this sign-in; no secret"),
  login: z.string().nullable(),
  method: z.enum(["none", OWN_AUTH]),
  engine_auth_token: z.string().nullable().describe("A JWT that verifies with /.well-known/jwks.json"),
});

const SIGN_IN = z.object({
  email: z.string().max(1024).optional().describe("Name of the account; goes with password"),
  password: z.string().max(8192).optional().describe("Password of the account"),
  idp_token: z.string().max(65_536).optional().describe("ID token of the provider of --oidc-issuer"),
});

function credentialsOf({ email, password, idp_token: token }: z.output<typeof SIGN_IN>): Credentials {
  const missing = (name: string) => new ApiError(API_CODES.missingParameter, `missing parameter: ${name}`);
  if (token) {
    if (email || password) {
      throw new ApiError(
        API_CODES.invalidParameter,
        "invalid parameter: idp_token: email and password are another way",
      );
    }
    return { kind: "identity", token };
  }
  if (!email) throw missing("email");
  if (!password) throw missing("password");
  return { kind: "password", email, password };
}

/** The methods of the account: who is signed in, sign in, sign out. */
export const ACCOUNT_METHODS: readonly Method[] = [
  defineMethod({
    name: "check_auth",
    summary: "Who is signed in.",
    public: false,
    remote: true,
    params: NONE,
    result: AUTH_STATUS,
    async handle(_params, { parts, ownUrl }) {
      const user = await parts.signIn.current();
      const level = user === null ? SIGNED_OUT : SIGNED_IN;
      return {
        package_name: null,
        global_auth_level: level,
        auth_level: level,
        session_auth_level: level,
        purse_amount: user === null ? -1 : 0,
        bonus_amount: 0,
        bonuses_updated_at: 0,
        package_color: -1,
        package_days_left: 0,
        token: user?.sessionId ?? null,
        login: user?.login ?? null,
        method: user === null ? "none" as const : OWN_AUTH,
        engine_auth_token: await user?.authToken(ownUrl) ?? null,
      };
    },
  }),
  defineMethod({
    name: "sign_in",
    summary: "Signs a user in, by email and password or by a token of an identity provider.",
    public: false,
    remote: true,
    params: SIGN_IN,
    result: OK,
    async handle(params, { parts, clientHost, signal }) {
      const outcome = await parts.signIn.signIn(credentialsOf(params), clientHost, signal);
      if (outcome.kind === "refused") throw new ApiError(API_CODES.documented, "auth_error");
      if (outcome.kind === "limited") {
        const seconds = Math.ceil(outcome.waitMs / 1000);
        throw new ApiError(API_CODES.unavailable, `too many attempts; try again in ${seconds} s`, 429, seconds);
      }
      return "ok" as const;
    },
  }),
  defineMethod({
    name: "sign_out",
    summary: "Signs the user out; tokens of the sign-in do not verify any more.",
    public: false,
    remote: true,
    params: NONE,
    result: OK,
    async handle(_params, { parts }) {
      await parts.signIn.signOut();
      return "ok" as const;
    },
  }),
];
