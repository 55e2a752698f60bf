import { existsSync } from "node:fs";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertNotEquals, assertRejects } from "@std/assert";
import { createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from "jose";
import { loadPorts } from "../../platform/detect.ts";
import { SignIn } from "../../src/account/sign-in.ts";
import type { Clock, FilePort, Ports } from "../../src/ports.ts";
import { MillraceError } from "../../src/errors.ts";
import { createSignInKeyStore, type SignInKeyStore } from "../../src/account/sign-in-key.ts";
import { createStore, type Store } from "../../src/database/store.ts";
import { temporaryDirectory } from "../support/engine.ts";
import { until } from "../support/until.ts";
import { addCheaply, type Answer, type Served, withAccounts, withServed } from "./support.ts";

const EMAIL = "ada@example.org";
const PASSWORD = "correct horse";
/** Acts as a proxy on this machine, so that the tests' callers have different addresses. */
const FROM = "127.0.0.1";

async function withAda(body: (served: Served, stateDir: string) => Promise<void>): Promise<void> {
  const { path, remove } = await temporaryDirectory();
  try {
    await addCheaply(path, EMAIL, PASSWORD);
    await withServed({ stateDir: path }, (served) => body(served, path));
  } finally {
    await remove();
  }
}

const signIn = ({ call }: Served, params: Record<string, string> = {}, from = FROM) =>
  call("sign_in", { email: EMAIL, password: PASSWORD, ...params }, from);
const loginOf = async ({ call }: Served) => (await call("check_auth")).result.login;

function assertAuthError(answer: Answer, what: string): void {
  assertEquals(
    [answer.status, answer.result, answer.error],
    [200, undefined, { message: "auth_error", code: 0 }],
    what,
  );
}

/** What section 2.10 shows while nobody is signed in. */
const SIGNED_OUT = {
  package_name: null,
  global_auth_level: 0,
  auth_level: 0,
  session_auth_level: 0,
  purse_amount: -1,
  bonus_amount: 0,
  bonuses_updated_at: 0,
  package_color: -1,
  package_days_left: 0,
  token: null,
  login: null,
  method: "none",
  engine_auth_token: null,
};

test("sign_in, check_auth and sign_out report who is signed in, with every field of section 2.10", async () => {
  await withAda(async (served) => {
    assertEquals((await served.call("check_auth")).result, SIGNED_OUT);
    assertEquals((await served.call("sign_out")).result, "ok", "signing out twice failed");
    assertEquals(await signIn(served), { status: 200, retryAfterS: null, result: "ok", error: null });
    const { token, engine_auth_token: jwt, ...rest } = (await served.call("check_auth")).result;
    assertEquals(rest, {
      package_name: null,
      global_auth_level: 1,
      auth_level: 1,
      session_auth_level: 1,
      purse_amount: 0,
      bonus_amount: 0,
      bonuses_updated_at: 0,
      package_color: -1,
      package_days_left: 0,
      login: EMAIL,
      method: "millrace_auth",
    });
    assertMatch(token, /^[0-9a-f]{32}$/);
    assertEquals(jwt.split(".").length, 3);
    assertEquals((await served.call("sign_out")).result, "ok");
    assertEquals((await served.call("check_auth")).result, SIGNED_OUT);
  });
});

test("sign_in refuses a wrong password and an unknown user with the same words, and names bad parameters", async () => {
  await withAda(async (served) => {
    assertAuthError(await signIn(served, { password: "wrong horse" }), "password");
    assertAuthError(await signIn(served, { email: "nobody@example.org" }), "email");
    assertAuthError(await signIn(served, { email: "' OR 1=1 --" }), "SQL");
    assertEquals((await signIn(served, { email: "  ADA@Example.org " })).result, "ok");
    const table: [Record<string, string>, number, RegExp][] = [
      [{ email: "" }, 2, /email/],
      [{ password: "" }, 2, /password/],
      [{ email: "", password: "" }, 2, /email/],
      [{ idp_token: "x" }, 3, /idp_token/],
      [{ email: "", password: "", idp_token: "x" }, 9, /--oidc-issuer/],
      [{ password: "x".repeat(9000) }, 3, /password/],
    ];
    for (const [params, code, says] of table) {
      const { status, error } = await signIn(served, params);
      assertEquals([status, error?.code], [200, code], JSON.stringify(params).slice(0, 80));
      assertMatch(error!.message, says);
    }
    assertEquals(await loginOf(served), EMAIL, "a failure signed the user out");
  });
});

test("engine_auth_token verifies with the published key until sign_out, for at most an hour", async () => {
  await withAda(async (served, stateDir) => {
    assertEquals(await served.jwks(), { keys: [] });
    await signIn(served);
    const status = (await served.call("check_auth")).result;
    const set = await served.jwks();
    assertEquals(set.keys.map((key) => Object.keys(key).sort()), [["alg", "crv", "kid", "kty", "use", "x", "y"]]);
    const verify = (jwt: string, keys: unknown, more = {}) =>
      jwtVerify(jwt, createLocalJWKSet(keys as JSONWebKeySet), { issuer: served.url, typ: "JWT", ...more });
    const { payload } = await verify(status.engine_auth_token, set);
    assertEquals([payload["login"], payload["sid"], payload.sub], [EMAIL, status.token, "account:1"]);
    assertEquals(payload.exp! - payload.iat!, 3600);
    const later = new Date(Date.now() + 3601_000);
    await assertRejects(() => verify(status.engine_auth_token, set, { currentDate: later }));
    const forged = status.engine_auth_token.split(".");
    forged[1] = btoa(JSON.stringify({ ...payload, login: "root" })).replace(/=+$/, "");
    await assertRejects(() => verify(forged.join("."), set));
    assertEquals((await stat(join(stateDir, "sign-in-key.json"))).mode & 0o777, 0o600);

    await served.call("sign_out");
    assertEquals(await served.jwks(), { keys: [] });
    assert(!existsSync(join(stateDir, "sign-in-key.json")));
    await signIn(served);
    const next = await served.jwks();
    assertNotEquals(next, set);
    await assertRejects(() => verify(status.engine_auth_token, next));
    const jwt = (await served.call("check_auth")).result.engine_auth_token;
    assertEquals(decodeProtectedHeader(jwt).kid, next.keys[0]!["kid"]);
    await verify(jwt, next);
  });
});

test("web pages cannot read the published keys", async () => {
  await withAda(async (served) => {
    const answer = await fetch(`${served.url}/.well-known/jwks.json`, { headers: { origin: "https://page.example" } });
    assertEquals(answer.headers.get("access-control-allow-origin"), null);
    assertEquals(answer.headers.get("cross-origin-resource-policy"), "same-origin");
    assertEquals(answer.headers.get("cache-control"), "private, max-age=60");
    await answer.body?.cancel();
  });
});

test("a sign-in survives a restart, ends after 90 days, and is worth nothing without its key", async () => {
  const { path, remove } = await temporaryDirectory();
  try {
    await addCheaply(path, EMAIL, PASSWORD);
    let keys: unknown;
    await withServed({ stateDir: path }, async (served) => {
      await signIn(served);
      keys = await served.jwks();
    });
    await withServed({ stateDir: path }, async (served) => {
      assertEquals([await loginOf(served), await served.jwks()], [EMAIL, keys]);
      served.clock.advance(89.9 * 86_400_000);
      assertEquals(await loginOf(served), EMAIL);
      served.clock.advance(0.2 * 86_400_000);
      assertEquals([(await served.call("check_auth")).result, await served.jwks()], [SIGNED_OUT, { keys: [] }]);
      await signIn(served);
    });
    const keyFile = join(path, "sign-in-key.json");
    const text = await readFile(keyFile, "utf8");
    for (const damage of ["", "{}", text.slice(0, 40), text.replace(/"crv":"[^"]+"/, '"crv":"P-521"')]) {
      await writeFile(keyFile, damage);
      await withServed({ stateDir: path }, async (served) => {
        assertEquals((await served.call("check_auth")).result, SIGNED_OUT, damage.slice(0, 20));
      });
    }
    await writeFile(keyFile, text);
    await withServed({ stateDir: path }, async (served) => assertEquals(await loginOf(served), EMAIL));
  } finally {
    await remove();
  }
});

test("removing an account or changing its password ends its sign-in at a running engine", async () => {
  await withAda(async (served, stateDir) => {
    await signIn(served);
    await withAccounts(stateDir, (accounts) => accounts.changePassword(EMAIL, "another horse"));
    assertEquals((await served.call("check_auth")).result, SIGNED_OUT);
    assertAuthError(await signIn(served), "the old password");
    assertEquals((await signIn(served, { password: "another horse" })).result, "ok");
    await withAccounts(stateDir, (accounts) => accounts.remove(EMAIL));
    assertEquals([await loginOf(served), await served.jwks()], [null, { keys: [] }]);
    assertAuthError(await signIn(served, { password: "another horse" }), "the account is gone");
  });
});

test("a second user replaces the first", async () => {
  await withAda(async (served, stateDir) => {
    await addCheaply(stateDir, "bob@example.org", "battery staple");
    await signIn(served);
    const before = await served.jwks();
    assertEquals((await signIn(served, { email: "bob@example.org", password: "battery staple" })).result, "ok");
    assertEquals(await loginOf(served), "bob@example.org");
    const after = await served.jwks();
    assertEquals(after.keys.length, 1);
    assertNotEquals(after, before);
  });
});

test("an engine without a state directory keeps sign-ins while it runs and has no accounts", async () => {
  await withServed({}, async (served) => {
    assertAuthError(await signIn(served), "no accounts");
    assertEquals((await served.call("check_auth")).result, SIGNED_OUT);
  });
});

test("sign_in is limited per account from any address, and per address for any account", async () => {
  await withAda(async (served) => {
    const wrong = { password: "wrong horse" };
    // Five failures in a row lock the account, even for the right password from elsewhere.
    for (let i = 0; i < 5; i++) assertAuthError(await signIn(served, wrong, `10.0.0.${i}`), `attempt ${i}`);
    const closed = await signIn(served, {}, "10.0.0.9");
    assertEquals([closed.status, closed.result, closed.error?.code], [429, undefined, 9]);
    assertEquals(closed.error!.message, `too many attempts; try again in ${closed.retryAfterS} s`);
    assert(closed.retryAfterS! > 0 && closed.retryAfterS! <= 60, String(closed.retryAfterS));
    served.clock.advance(60_000);
    assertEquals((await signIn(served, {}, "10.0.0.9")).result, "ok");
    // A correct password does not clear the failures before it.
    assertAuthError(await signIn(served, wrong, "10.0.0.9"), "one more");
    assertEquals((await signIn(served, {}, "10.0.0.9")).status, 429);

    // Ten failures from one address, counting all IPv6 addresses of one host together.
    const token = { email: "", password: "", idp_token: "of no provider" };
    for (let i = 0; i < 10; i++) assertEquals((await signIn(served, token, `2001:db8:1:2::${i + 1}`)).status, 200);
    assertEquals((await signIn(served, token, "2001:db8:1:2:ffff::1")).status, 429);
    assertEquals((await signIn(served, token, "2001:db8:1:3::1")).status, 200, "another network was limited too");
    served.clock.advance(30_000);
    assertEquals((await signIn(served, token, "2001:db8:1:2::1")).status, 200, "the limit did not end");
    assertEquals((await signIn(served, token, "2001:db8:1:2::1")).status, 429);
  });
});

test("SignIn checks passwords one after another and rejects callers it cannot serve soon", async () => {
  const ports = await loadPorts();
  const store = createStore(ports, { kind: "memory" });
  const open: (() => void)[] = [];
  let [atOnce, mostAtOnce] = [0, 0];
  const signIn = new SignIn({
    store,
    clock: ports.clock,
    keys: createSignInKeyStore(ports.files, null),
    identityProvider: null,
    accounts: {
      async verify() {
        mostAtOnce = Math.max(mostAtOnce, ++atOnce);
        await new Promise<void>((resolve) => open.push(resolve));
        atOnce--;
        return null;
      },
    },
  });
  const { signal } = new AbortController();
  const attempt = (i: number) =>
    signIn.signIn({ kind: "password", email: `u${i}@example.org`, password: "x" }, `10.1.${i}.1`, signal);
  const waiting = Array.from({ length: 16 }, (_, i) => attempt(i));
  assertEquals(await attempt(16), { kind: "limited", waitMs: 1000 });
  for (let i = 0; i < 16; i++) {
    await until("its turn", () => open.length > i);
    open[i]!();
  }
  for (const outcome of await Promise.all(waiting)) assertEquals(outcome, { kind: "refused" });
  assertEquals(mostAtOnce, 1);
  await store.close();
});

/** Sign-in on `store` with its own key in memory; accounts accept any password. */
function signInOn(store: Store, keys: SignInKeyStore, clock: Clock): SignIn {
  const accounts = { verify: (email: string) => Promise.resolve({ id: 1, email, record: "r" }) };
  return new SignIn({ store, clock, keys, accounts, identityProvider: null });
}

async function withStore(body: (store: Store, ports: Ports) => Promise<void>): Promise<void> {
  const ports = await loadPorts();
  const store = createStore(ports, { kind: "memory" });
  try {
    const db = await store.open();
    await db.insertInto("accounts").values({ id: 1, email: EMAIL, password: "r", created_at: 0, updated_at: 0 })
      .execute();
    await body(store, ports);
  } finally {
    await store.close();
  }
}

const CREDENTIALS = { kind: "password", email: EMAIL, password: "any" } as const;
const { signal } = new AbortController();

test("engines that share a database each have their own sign-in", () =>
  withStore(async (store, { files, clock }) => {
    const [one, two] = [0, 1].map(() => signInOn(store, createSignInKeyStore(files, null), clock));
    await one!.signIn(CREDENTIALS, FROM, signal);
    assertEquals([(await one!.current())?.login, await two!.current()], [EMAIL, null]);
    await two!.signIn(CREDENTIALS, FROM, signal);
    await one!.signOut();
    assertEquals([await one!.current(), (await two!.current())?.login], [null, EMAIL]);
    assertEquals([(await one!.publicKeys()).length, (await two!.publicKeys()).length], [0, 1]);
  }));

test("a sign-in whose key cannot be stored fails, and nobody is signed in", () =>
  withStore(async (store, { files, clock }) => {
    const { path, remove } = await temporaryDirectory();
    try {
      let isFull = false;
      const full: FilePort = {
        ...files,
        writeFile: (...args) =>
          isFull ? Promise.reject(new MillraceError("disk_full", "the disk is full")) : files.writeFile(...args),
      };
      const signIn = signInOn(store, createSignInKeyStore(full, path), clock);
      assertEquals(await signIn.signIn(CREDENTIALS, FROM, signal), { kind: "signed_in" });
      isFull = true;
      await assertRejects(() => signIn.signIn(CREDENTIALS, FROM, signal), MillraceError, "the disk is full");
      assertEquals([await signIn.current(), await signIn.publicKeys()], [null, []]);
      isFull = false;
      assertEquals(await signIn.signIn(CREDENTIALS, FROM, signal), { kind: "signed_in" });
      assertEquals((await signIn.current())?.login, EMAIL);
    } finally {
      await remove();
    }
  }));

test("concurrent sign-ins and sign-outs leave one user or none, and at most one row", () =>
  withStore(async (store, { files, clock }) => {
    const signIn = signInOn(store, createSignInKeyStore(files, null), clock);
    for (let round = 0; round < 10; round++) {
      await Promise.all([
        ...Array.from({ length: 4 }, () => signIn.signIn(CREDENTIALS, FROM, signal)),
        ...(round % 2 === 0 ? [] : [signIn.signOut()]),
      ]);
      const rows = await (await store.open()).selectFrom("sign_ins").selectAll().execute();
      assert(rows.length <= 1, `${rows.length} rows`);
      assertEquals(await signIn.current() === null, rows.length === 0);
    }
  }));
