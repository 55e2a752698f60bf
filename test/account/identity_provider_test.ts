import http from "node:http";
import type net from "node:net";
import { test } from "node:test";
import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";
import { MillraceError } from "../../src/errors.ts";
import { IdentityProvider } from "../../src/account/identity-provider.ts";
import { createEngine } from "../../src/engine.ts";
import { loadPorts } from "../../platform/detect.ts";
import { type Served, withServed } from "./support.ts";
import { seededBelow } from "../support/random.ts";

const AUDIENCE = "our-client";

interface Key {
  readonly jwk: JWK;
  readonly privateKey: CryptoKey;
  readonly alg: string;
}

async function makeKey(alg: string, kid: string | null): Promise<Key> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  return { jwk: { ...await exportJWK(publicKey), ...(kid === null ? {} : { kid }), alg }, privateKey, alg };
}

/** A provider as in reality: discovery and keys over HTTP, tokens signed with those keys. */
class Provider {
  /** Changes its responses. */
  discovery: Record<string, unknown> = {};
  keys: readonly Key[] = [];
  status = 200;
  requests: string[] = [];
  readonly #server = http.createServer((request, response) => {
    this.requests.push(request.url ?? "");
    response.statusCode = this.status;
    response.setHeader("content-type", "application/json");
    if (request.url === "/realm/.well-known/openid-configuration") {
      response.end(JSON.stringify({ issuer: this.issuer, jwks_uri: `${this.base}/keys`, ...this.discovery }));
    } else if (request.url === "/keys") response.end(JSON.stringify({ keys: this.keys.map(({ jwk }) => jwk) }));
    else {
      response.statusCode = 404;
      response.end();
    }
  });

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port;
  }

  get base(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get issuer(): string {
    return `${this.base}/realm`;
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** A valid token except for `claims`; undefined omits one. */
  async token(claims: Record<string, unknown> = {}, key: Key = this.keys[0]!, header = {}): Promise<string> {
    const now = Math.floor(Date.now() / 1000);
    const all = { iss: this.issuer, aud: AUDIENCE, sub: "u-17", iat: now, exp: now + 300, ...claims };
    return await new SignJWT(all).setProtectedHeader({
      alg: key.alg,
      ...(key.jwk.kid === undefined ? {} : { kid: key.jwk.kid }),
      ...header,
    }).sign(key.privateKey);
  }
}

async function withProvider(body: (provider: Provider, served: Served) => Promise<void>): Promise<void> {
  const provider = new Provider();
  await provider.start();
  provider.keys = [await makeKey("RS256", "one")];
  try {
    await withServed(
      { oidcIssuer: provider.issuer, oidcAudience: AUDIENCE },
      async (served) => await body(provider, served),
    );
  } finally {
    await provider.stop();
  }
}

let callers = 0;
/** Signs in from a different address each time, so that the limit on attempts does not interfere. */
const signIn = ({ call }: Served, token: string) =>
  call("sign_in", { idp_token: token }, `10.9.${callers++ >> 8}.${callers & 255}`);
const loginOf = async ({ call }: Served) => (await call("check_auth")).result.login;

test("sign_in takes ID tokens of the provider, signed with any of the usual public keys", async () => {
  await withProvider(async (provider, served) => {
    const algorithms = ["RS256", "PS256", "ES256", "ES384", "EdDSA"];
    provider.keys = await Promise.all(algorithms.map((alg) => makeKey(alg, alg)));
    for (const [i, key] of provider.keys.entries()) {
      const answer = await signIn(served, await provider.token({ sub: `user-${i}` }, key));
      assertEquals(answer, { status: 200, retryAfterS: null, result: "ok", error: null }, key.alg);
      assertEquals(await loginOf(served), `user-${i}`);
    }
    assertEquals(provider.requests, ["/realm/.well-known/openid-configuration", "/keys"], "asked once");
    const status = (await served.call("check_auth")).result;
    assertEquals([status.method, status.auth_level], ["millrace_auth", 1]);
    const claims = JSON.parse(atob(status.engine_auth_token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/")));
    assertEquals([claims.sub, claims.idp, claims.login], ["user-4", provider.issuer, "user-4"]);
    assertEquals((await served.call("sign_out")).result, "ok");
    assertEquals(await loginOf(served), null);
  });
});

test("sign_in names the user by verified email, else by name, else by subject", async () => {
  await withProvider(async (provider, served) => {
    const table: [Record<string, unknown>, string][] = [
      [{ email: "a@b.org", email_verified: true, preferred_username: "ab" }, "a@b.org"],
      [{ email: "root@b.org", email_verified: false, preferred_username: "ab" }, "ab"],
      [{ email: "root@b.org" }, "u-17"],
      [{ preferred_username: 7 }, "u-17"],
      [{ preferred_username: "x".repeat(1000) }, "x".repeat(254)],
    ];
    for (const [claims, login] of table) {
      assertEquals((await signIn(served, await provider.token(claims))).result, "ok", login);
      assertEquals(await loginOf(served), login);
    }
  });
});

test("sign_in refuses tokens that are expired, meant for others, or not signed by the provider", async () => {
  await withProvider(async (provider, served) => {
    const now = Math.floor(Date.now() / 1000);
    const good = await provider.token();
    const [head, body, signature] = good.split(".");
    const encode = (value: unknown) => btoa(JSON.stringify(value)).replace(/=+$/, "");
    const stranger = await makeKey("RS256", "one");
    const { n } = provider.keys[0]!.jwk;
    const symmetric = await new SignJWT({ iss: provider.issuer, aud: AUDIENCE, sub: "u-17", iat: now, exp: now + 300 })
      .setProtectedHeader({ alg: "HS256", kid: "one" }).sign(new TextEncoder().encode(n));
    const table: [string, string][] = [
      ["expired", await provider.token({ exp: now - 61 })],
      ["no end", await provider.token({ exp: undefined })],
      ["no beginning", await provider.token({ iat: undefined })],
      ["not yet", await provider.token({ nbf: now + 120 })],
      ["another's", await provider.token({ aud: "other-client" })],
      ["nobody's", await provider.token({ aud: undefined })],
      ["asked for by another", await provider.token({ aud: [AUDIENCE, "other-client"], azp: "other-client" })],
      ["for two, asked for by none", await provider.token({ aud: [AUDIENCE, "other-client"] })],
      ["another issuer", await provider.token({ iss: "https://accounts.example" })],
      ["no user", await provider.token({ sub: undefined })],
      ["empty user", await provider.token({ sub: "" })],
      ["number for a user", await provider.token({ sub: 17 })],
      ["a stranger's key", await provider.token({}, stranger)],
      ["no signature", `${head}.${body}.`],
      ["alg none", `${encode({ alg: "none" })}.${body}.`],
      ["public key as a shared secret", symmetric],
      [
        "claims changed",
        `${head}.${
          encode({ iss: provider.issuer, aud: AUDIENCE, sub: "root", iat: now, exp: now + 300 })
        }.${signature}`,
      ],
      ["garbage", "a.b.c"],
      ["one word", "hello"],
      ["too long", `${good}${"A".repeat(17_000)}`],
    ];
    for (const [what, token] of table) {
      const { status, error } = await signIn(served, token);
      assertEquals([status, error], [200, { message: "auth_error", code: 0 }], what);
    }
    assertEquals(await loginOf(served), null);
    const both = await provider.token({ aud: [AUDIENCE, "other-client"], azp: AUDIENCE });
    assertEquals((await signIn(served, both)).result, "ok");
    assertEquals(
      (await signIn(served, await provider.token({ exp: now - 30 }))).result,
      "ok",
      "clocks differ a little",
    );
  });
});

test("sign_in fetches the provider's new keys, and does not let forged tokens flood it", async () => {
  await withProvider(async (provider, served) => {
    assertEquals((await signIn(served, await provider.token())).result, "ok");
    const old = provider.keys[0]!;
    provider.keys = [await makeKey("ES256", "two")];
    provider.requests = [];
    for (let i = 0; i < 5; i++) {
      assertEquals((await signIn(served, await provider.token())).error?.code, 0, "the keys were fetched just now");
    }
    assertEquals(provider.requests, []);
    served.clock.advance(30_000);
    // The token's times come from the same clock.
    const iat = Math.floor(served.clock.now() / 1000);
    assertEquals((await signIn(served, await provider.token({ iat, exp: iat + 300 }))).result, "ok");
    assertEquals((await signIn(served, await provider.token({ iat, exp: iat + 300 }, old))).error?.code, 0);
    assertEquals(provider.requests.length, 2);
    served.clock.advance(10 * 60_000);
    const later = Math.floor(served.clock.now() / 1000);
    assertEquals((await signIn(served, await provider.token({ iat: later, exp: later + 300 }))).result, "ok");
    assertEquals(provider.requests.length, 4, "the keys were used forever");
  });
});

test("sign_in tries all keys of a provider whose keys have no ids", async () => {
  await withProvider(async (provider, served) => {
    provider.keys = [await makeKey("RS256", null), await makeKey("RS256", null)];
    for (const key of provider.keys) assertEquals((await signIn(served, await provider.token({}, key))).result, "ok");
    const { error } = await signIn(served, await provider.token({}, await makeKey("RS256", null)));
    assertEquals(error?.code, 0);
    const expired = Math.floor(Date.now() / 1000) - 100;
    const { error: late } = await signIn(served, await provider.token({ exp: expired }, provider.keys[1]));
    assertEquals(late?.code, 0);
  });
});

test("sign_in passes over keys that cannot be used, and says when they are all that there is, or too many", async () => {
  const right = await makeKey("RS256", null);
  // Numbers that are no modulus, one of them too short.
  const odd = (bytes: number, kid: string | null): Key => {
    const n = Buffer.from(Uint8Array.from({ length: bytes }, (_, i) => i + 1)).toString("base64url");
    return { ...right, jwk: { ...right.jwk, n, ...(kid === null ? {} : { kid }) } };
  };
  await withProvider(async (provider, served) => {
    provider.keys = [odd(256, null), odd(64, null), odd(3, null), right];
    assertEquals((await signIn(served, await provider.token({}, right))).error, null);
  });
  const refused: [Key[], RegExp][] = [
    [[odd(64, "a")], /identity provider cannot be used: its key cannot be used/],
    [Array.from({ length: 600 }, () => ({ ...right, jwk: { kty: "RSA", n: "AQ", e: "AQAB" } })), /more than 100 keys/],
  ];
  for (const [keys, message] of refused) {
    await withProvider(async (provider, served) => {
      provider.keys = keys;
      const named = keys.length === 1 ? keys[0]! : right;
      assertMatch(
        (await signIn(served, await provider.token({}, { ...named, privateKey: right.privateKey }))).error?.message ??
          "",
        message,
      );
    });
  }
});

test("sign_in reports a provider that is down or returns nonsense, and signs nobody in", async () => {
  await withProvider(async (provider, served) => {
    const token = await provider.token();
    const failing: [string, () => void, RegExp][] = [
      ["status", () => provider.status = 500, /answered 500/],
      ["another issuer", () => provider.discovery = { issuer: "https://accounts.example" }, /names another issuer/],
      ["no keys", () => provider.discovery = { jwks_uri: undefined }, /names no keys/],
      ["file", () => provider.discovery = { jwks_uri: "file:///etc/passwd" }, /gives no document/],
      // The operator chose the provider's own host; any other private host would be the provider's choice.
      [
        "elsewhere",
        () => provider.discovery = { jwks_uri: `http://localhost:${provider.port}/keys` },
        /gives no document/,
      ],
      ["no document", () => provider.discovery = { jwks_uri: `${provider.base}/missing` }, /gives no document/],
      [
        "no set",
        () => provider.discovery = { jwks_uri: provider.issuer + "/.well-known/openid-configuration" },
        /JWK set/,
      ],
    ];
    for (const [what, spoil, says] of failing) {
      spoil();
      const { status, error } = await signIn(served, token);
      assertEquals([status, error?.code], [200, 9], what);
      assertMatch(error!.message, says);
      provider.status = 200;
      provider.discovery = {};
    }
    assertEquals(await loginOf(served), null);
    assertEquals((await signIn(served, token)).result, "ok", "the provider is not asked again once it works");
  });
});

test("createEngine() refuses an issuer that cannot be trusted", async () => {
  const ports = await loadPorts({ log: { level: "error" } });
  const table: [string, string | null, RegExp][] = [
    ["https://accounts.example", null, /--oidc-audience/],
    ["http://accounts.example", AUDIENCE, /needs https/],
    ["http://127.0.0.1.evil.example", AUDIENCE, /needs https/],
    ["https://accounts.example?x=1", AUDIENCE, /no query/],
  ];
  for (const [oidcIssuer, oidcAudience, says] of table) {
    const error = await assertRejects(
      () => createEngine(ports, { oidcIssuer, oidcAudience, dht: false, lsd: false, peerPort: 0 }),
      MillraceError,
    );
    assertEquals((error as MillraceError).code, "config", oidcIssuer);
    assertMatch((error as Error).message, says);
  }
});

/** A provider on https without a network: `documents` by address; a text is the address that a redirect ends at. */
async function providerOf(documents: Record<string, { answer: unknown; url?: string }>) {
  const { clock } = await loadPorts();
  const asked: [string, boolean][] = [];
  const provider = new IdentityProvider({
    issuer: "https://accounts.example/realm",
    audience: AUDIENCE,
    clock,
    fetchBytes(url, { allowPrivate }) {
      asked.push([url, allowPrivate]);
      const found = documents[url];
      if (found === undefined) return Promise.reject(new MillraceError("not_found", "it answered 404"));
      const bytes = new TextEncoder().encode(JSON.stringify(found.answer));
      return Promise.resolve({ bytes, url: found.url ?? url });
    },
  });
  return { provider, asked };
}

const DISCOVERY = "https://accounts.example/realm/.well-known/openid-configuration";

test("IdentityProvider stays on https and allows only the issuer's own host to be private", async () => {
  const key = await makeKey("ES256", "one");
  const set = { answer: { keys: [key.jwk] } };
  const issuer = "https://accounts.example/realm";
  const now = Math.floor(Date.now() / 1000);
  const token = await new SignJWT({ iss: issuer, aud: AUDIENCE, sub: "u", iat: now, exp: now + 60 })
    .setProtectedHeader({ alg: "ES256", kid: "one" }).sign(key.privateKey);
  const { signal } = new AbortController();
  const own = await providerOf({
    [DISCOVERY]: { answer: { issuer, jwks_uri: "https://accounts.example/keys" } },
    "https://accounts.example/keys": set,
  });
  assertEquals(await own.provider.verify(token, signal), { issuer, subject: "u", login: "u" });
  assertEquals(own.asked, [[DISCOVERY, true], ["https://accounts.example/keys", true]]);
  const other = await providerOf({
    // Providers may write their own name with a slash at the end.
    [DISCOVERY]: { answer: { issuer: `${issuer}/`, jwks_uri: "https://keys.example/keys" } },
    "https://keys.example/keys": set,
  });
  assertEquals((await other.provider.verify(token, signal))?.subject, "u");
  assertEquals(other.asked[1], ["https://keys.example/keys", false]);
  const insecure: Parameters<typeof providerOf>[0][] = [
    {
      [DISCOVERY]: { answer: { issuer, jwks_uri: "http://accounts.example/keys" } },
      "http://accounts.example/keys": set,
    },
    {
      [DISCOVERY]: { answer: { issuer, jwks_uri: "https://accounts.example/keys" } },
      "https://accounts.example/keys": { ...set, url: "http://accounts.example/keys" },
    },
    { [DISCOVERY]: { answer: { issuer, jwks_uri: "https://accounts.example/keys" }, url: "http://evil.example/" } },
  ];
  for (const documents of insecure) {
    const { provider } = await providerOf(documents);
    const error = await assertRejects(() => provider.verify(token, signal), MillraceError);
    assertEquals((error as MillraceError).code, "unavailable");
    assertMatch((error as Error).message, /https/);
  }
});

test("IdentityProvider.verify() accepts no mangled token and never throws on one", async () => {
  const key = await makeKey("ES256", "one");
  const issuer = "https://accounts.example/realm";
  const { provider } = await providerOf({
    [DISCOVERY]: { answer: { issuer, jwks_uri: "https://accounts.example/keys" } },
    "https://accounts.example/keys": { answer: { keys: [key.jwk] } },
  });
  const now = Math.floor(Date.now() / 1000);
  const token = await new SignJWT({ iss: issuer, aud: AUDIENCE, sub: "u", iat: now, exp: now + 600 })
    .setProtectedHeader({ alg: "ES256", kid: "one" }).sign(key.privateKey);
  const { signal } = new AbortController();
  const random = seededBelow(11);
  const letters = "ABCdef019-_.=+/ \n\0é{}";
  for (let round = 0; round < 1500; round++) {
    let mangled = token;
    for (let edits = 1 + random(3); edits > 0; edits--) {
      const at = random(mangled.length + 1);
      const letter = letters[random(letters.length)]!;
      mangled = mangled.slice(0, at) + [letter, "", letter.repeat(random(40))][random(3)] +
        mangled.slice(at + random(3));
    }
    const identity = await provider.verify(mangled, signal);
    // The last letter of a signature has unused bits: a different text of the same signature is no forgery.
    if (identity !== null) assertEquals(mangled.slice(0, -2), token.slice(0, -2), mangled);
  }
  assertEquals((await provider.verify(token, signal))?.subject, "u");
});
