/** Assembles sign-in from an engine's options. */
import type { Store } from "../database/store.ts";
import { MillraceError } from "../errors.ts";
import type { Clock, FilePort } from "../ports.ts";
import { Accounts } from "./accounts.ts";
import { IdentityProvider, type IdentityProviderOptions } from "./identity-provider.ts";
import { SignIn } from "./sign-in.ts";
import { createSignInKeyStore } from "./sign-in-key.ts";

/** The options and parts of the engine that sign-in needs. */
export interface SignInSetup {
  readonly store: Store;
  readonly clock: Clock;
  readonly files: FilePort;
  /** Null: a sign-in ends with the engine. */
  readonly stateDir: string | null;
  /** Null: no identity provider. */
  readonly oidcIssuer: string | null;
  readonly oidcAudience: string | null;
  readonly fetchBytes: IdentityProviderOptions["fetchBytes"];
}

/** Throws `config` for an issuer that cannot be trusted, or one without a client id. */
export function createSignIn(setup: SignInSetup): SignIn {
  const { store, clock, files, stateDir } = setup;
  return new SignIn({
    store,
    clock,
    accounts: new Accounts(store, clock),
    keys: createSignInKeyStore(files, stateDir),
    identityProvider: provider(setup),
  });
}

function provider({ oidcIssuer: issuer, oidcAudience: audience, clock, fetchBytes }: SignInSetup) {
  if (issuer === null) return null;
  if (!audience) {
    throw new MillraceError("config", "--oidc-issuer needs --oidc-audience, the client id at that provider");
  }
  return new IdentityProvider({ issuer, audience, clock, fetchBytes });
}
