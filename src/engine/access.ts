/** Access to the engine, and what is remembered about it: policy, token, settings, accounts. */
import { type AccessToken, accessToken, loadAccessToken } from "../account/access-token.ts";
import { createSignIn } from "../account/create-sign-in.ts";
import { Devices } from "../account/devices.ts";
import { createSettings, type SettingsStore } from "../account/settings.ts";
import type { SignIn } from "../account/sign-in.ts";
import { guardedFetch } from "../content/fetch-guard.ts";
import { createStore, type Store, storeLocation } from "../database/store.ts";
import { AccessPolicy } from "../http/address.ts";
import type { Ground } from "./ground.ts";
import { SettingsWatch } from "./settings-watch.ts";
import { applySettings } from "./state.ts";

/** Time limit for one document of the identity provider, ms. */
const FETCH_TIMEOUT_MS = 20_000;

/** The parts that decide about callers. */
export interface AccessParts {
  readonly policy: AccessPolicy;
  readonly token: AccessToken;
  readonly store: Store;
  readonly settings: SettingsStore;
  readonly signIn: SignIn;
  readonly devices: Devices;
}

/** Opens the database and applies its settings. Rejects with `io` or `config`. */
export async function openAccess({ ports, options, stateDir, closing }: Ground): Promise<AccessParts> {
  const policy = new AccessPolicy(ports.network, {
    allowedHosts: options.allowedHosts ?? [],
    allowedOrigins: options.allowOrigins ?? [],
    publicUrl: options.publicUrl ?? null,
    trustedProxies: options.trustProxy ?? [],
    allowIntranet: true,
    allowInternet: false,
  });
  const token = options.accessToken ? accessToken(options.accessToken) : await loadAccessToken(ports, stateDir);
  const location = storeLocation({ databaseUrl: null, databaseToken: null, ...options, stateDir });
  const store = createStore(ports, location, { replacesDamaged: true });
  closing.push(() => store.close());
  const stored = createSettings(store);
  await applySettings(stored, policy, store, location);
  const watch = store.isRemote
    ? new SettingsWatch({ settings: stored, policy, clock: ports.clock, log: ports.log })
    : null;
  closing.push(() => watch?.close());
  const settings = watch?.settings ?? stored;
  const signIn = createSignIn({
    store,
    clock: ports.clock,
    files: ports.files,
    stateDir,
    oidcIssuer: options.oidcIssuer ?? null,
    oidcAudience: options.oidcAudience ?? null,
    fetchBytes: (url, limits, signal) => guardedFetch(ports, url, { ...limits, timeoutMs: FETCH_TIMEOUT_MS }, signal),
  });
  return { policy, token, store, settings, signIn, devices: new Devices(store, ports.clock) };
}
