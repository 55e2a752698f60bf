import { scryptSync } from "node:crypto";
import { test } from "node:test";
import { assert, assertEquals, assertMatch, assertNotEquals, assertRejects } from "@std/assert";
import { hashPassword, verifyPassword } from "../../src/account/password.ts";
import { type ErrorCode, MillraceError } from "../../src/errors.ts";
import { cpuMs } from "../support/cpu-time.ts";

async function rejects(run: () => Promise<unknown>, code: ErrorCode, what: string): Promise<void> {
  assertEquals((await assertRejects(run, MillraceError, "", what) as MillraceError).code, code, what);
}

test("hashPassword() makes a record that verifyPassword() accepts only for that password", async () => {
  const record = await hashPassword("correct horse");
  assertMatch(record, /^\$scrypt\$ln=14,r=8,p=5\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
  assertNotEquals(record, await hashPassword("correct horse"));
  assertEquals(await verifyPassword(record, "correct horse"), true);
  for (const wrong of ["correct horsf", "correct hors", ""]) {
    assertEquals(await verifyPassword(record, wrong), false, wrong);
  }
});

test("verifyPassword() accepts the same letters however they were typed (NFC)", async () => {
  const record = await hashPassword("Zürich 2026");
  assertEquals(await verifyPassword(record, "Zu\u0308rich 2026"), true);
});

test("hashPassword() computes the same scrypt as another implementation", async () => {
  const record = await hashPassword("correct horse");
  const [salt, hash] = record.split("$").slice(3).map((part) => Uint8Array.from(atob(part), (c) => c.charCodeAt(0)));
  const other = scryptSync("correct horse", salt!, 32, { N: 2 ** 14, r: 8, p: 5, maxmem: 64 * 2 ** 20 });
  assertEquals([...hash!], [...other]);
});

test("hashPassword() refuses passwords that are too short or too long", async () => {
  for (const password of ["", "seven77", "🎬".repeat(7), "x".repeat(1025)]) {
    await rejects(() => hashPassword(password), "invalid_argument", password.slice(0, 10));
  }
  assertMatch(await hashPassword("🎬".repeat(8)), /^\$scrypt/);
});

test("verifyPassword() never accepts a damaged or absurdly expensive record", async () => {
  const good = await hashPassword("correct horse");
  const records = [
    "",
    "plain",
    good.slice(0, -1),
    good.replace("ln=14", "ln=30"),
    good.replace("ln=14", "ln=0"),
    good.replace("p=5", "p=99"),
    good.replace("scrypt", "bcrypt"),
  ];
  for (const record of records) await rejects(() => verifyPassword(record, "correct horse"), "corrupt", record);
});

test("verifyPassword() takes as long for an unknown account", async () => {
  const record = await hashPassword("correct horse");
  const times: Record<"known" | "unknown", number[]> = { known: [], unknown: [] };
  const least = (kind: "known" | "unknown") => Math.min(...times[kind]);
  const areAlike = () => least("unknown") > least("known") / 2 && least("unknown") < least("known") * 2;
  for (let i = 0; i < 8 && (i < 2 || !areAlike()); i++) {
    for (const [kind, kept] of [["known", record], ["unknown", null]] as const) {
      const before = cpuMs();
      assertEquals(await verifyPassword(kept, "wrong horse"), false);
      times[kind].push(cpuMs() - before);
    }
  }
  // The least of several: other work on the machine only adds. A missing hash would take no time at all.
  assert(areAlike(), `${least("known")} ms and ${least("unknown")} ms`);
});

test("verifyPassword() lets other tasks run while it works", async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  await verifyPassword(null, "anything");
  clearInterval(timer);
  // In one piece it would leave none.
  assert(turns >= 5, `${turns} turns`);
});
