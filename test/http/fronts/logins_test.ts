/** Passwords that clients send with every request. */
import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { basicCredentials, FrontLogins } from "../../../src/http/fronts/logins.ts";
import type { SignIn } from "../../../src/account/sign-in.ts";
import { FakeClock } from "../../support/fake-clock.ts";

function logins() {
  const checks: string[] = [];
  const verify = (user: string, password: string) => {
    checks.push(`${user} ${password}`);
    const kind = password === "right" ? "verified" : password === "many" ? "limited" : "refused";
    return Promise.resolve({ kind });
  };
  const clock = new FakeClock();
  const made = new FrontLogins({ verify } as unknown as SignIn, clock);
  const check = (user: string, password: string) =>
    made.check(user, password, "192.168.7.77", new AbortController().signal);
  return { checks, clock, check };
}

test("FrontLogins.check() checks a password that was right once per minute, however many requests come at once", async () => {
  const { checks, clock, check } = logins();
  assertEquals(await Promise.all([check("a", "right"), check("a", "right")]), ["right", "right"]);
  assertEquals(await check("a", "right"), "right");
  assertEquals(checks.length, 1);
  clock.advance(60_000);
  assertEquals(await check("a", "right"), "right");
  assertEquals(checks.length, 2);
});

test("FrontLogins.check() remembers no password that was wrong, and checks none that nobody can have", async () => {
  const { checks, check } = logins();
  assertEquals([await check("a", "no"), await check("a", "no"), await check("a", "many")], [
    "wrong",
    "wrong",
    "too_often",
  ]);
  assertEquals(checks.length, 3);
  assertEquals([await check("", "right"), await check("a", ""), await check("a".repeat(2000), "right")], [
    "wrong",
    "wrong",
    "wrong",
  ]);
  assertEquals(checks.length, 3);
});

test("basicCredentials() reads name and password, which may hold colons and any letters", () => {
  const field = (text: string) => `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(text)))}`;
  assertEquals(basicCredentials(field("me@x:pä:ss")), { user: "me@x", password: "pä:ss" });
  for (const bad of [undefined, "", "Basic", "Basic ???", "Bearer abc", field("no colon")]) {
    assertEquals(basicCredentials(bad), null, bad);
  }
});
