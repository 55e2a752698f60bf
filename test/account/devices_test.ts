/** Devices of the household: signing in to the page by password, what their tokens open, and how they are signed out. */
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { loadPorts } from "../../platform/detect.ts";
import { Devices } from "../../src/account/devices.ts";
import { createStore } from "../../src/database/store.ts";
import { deviceName } from "../../src/http/device-routes.ts";
import { FROM } from "../support/caller.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { temporaryDirectory } from "../support/engine.ts";
import { addCheaply, type Served, withAccounts, withServed } from "./support.ts";

const EMAIL = "ada@example.org";
const PASSWORD = "correct horse";
const PHONE = "192.168.7.77";
const DAY_MS = 86_400_000;

async function withAda(body: (served: Served, stateDir: string) => Promise<void>): Promise<void> {
  const { path, remove } = await temporaryDirectory();
  try {
    await addCheaply(path, EMAIL, PASSWORD);
    await withServed({ stateDir: path }, (served) => body(served, path));
  } finally {
    await remove();
  }
}

/** Signs in as the engine's own page on a phone does, unless `more` says otherwise. */
async function signIn({ url }: Served, password = PASSWORD, more: Record<string, string> = {}, body?: string) {
  const response = await fetch(`${url}/webui/sign-in`, {
    method: "POST",
    headers: { [FROM]: PHONE, origin: url, "user-agent": "Mozilla/5.0 (Android 15; Mobile) Firefox/140.0", ...more },
    body: body ?? JSON.stringify({ email: ` ${EMAIL.toUpperCase()} `, password }),
  });
  return { status: response.status, retryAfter: response.headers.get("retry-after"), ...await response.json() };
}

const codeWith = async ({ call }: Served, token: string, method = "playlist_get") =>
  (await call(method, { token }, PHONE)).error?.code ?? null;

test("/webui/sign-in gives a device a token that opens private methods, and not what is for the engine's machine", async () => {
  await withAda(async (served) => {
    const { status, id, token } = await signIn(served);
    assertEquals(status, 200);
    assertMatch(token, /^[0-9a-f]{64}$/);
    assertEquals([await codeWith(served, token), await codeWith(served, "0".repeat(64))], [null, 4]);
    assertEquals(await codeWith(served, token, "set_allow_remote_access"), 4);
    const { devices } = (await served.call("get_devices")).result;
    const [{ created_at, seen_at, ...device }] = devices;
    assertEquals([devices.length, device], [1, { id, login: EMAIL, name: "Firefox · Android" }]);
    assert(created_at > 0 && seen_at === created_at);
    assertEquals((await served.call("check_auth")).result.login, null, "nobody signed in to the engine itself");
  });
});

test("remove_device, another password and removing the account end what a device may do; the others stay", async () => {
  await withAda(async (served, stateDir) => {
    await addCheaply(stateDir, "bob@example.org", PASSWORD);
    const bob = await signIn(served, PASSWORD, {}, JSON.stringify({ email: "bob@example.org", password: PASSWORD }));
    const [phone, tablet] = [await signIn(served), await signIn(served)];
    const codes = () => Promise.all([phone, tablet, bob].map(({ token }) => codeWith(served, token)));
    assertEquals(await codes(), [null, null, null]);
    assertEquals((await served.call("remove_device", { id: String(phone.id) })).result, "ok");
    assertEquals((await served.call("remove_device", { id: String(phone.id) })).error?.code, 5);
    assertEquals(await codes(), [4, null, null]);
    await withAccounts(stateDir, (accounts) => accounts.changePassword(EMAIL, "another horse"));
    assertEquals(await codes(), [4, 4, null]);
    await withAccounts(stateDir, (accounts) => accounts.remove("bob@example.org"));
    assertEquals([await codes(), (await served.call("get_devices")).result.devices], [[4, 4, 4], []]);
  });
});

test("a device stays signed in while it is used, and no longer than 90 days without", async () => {
  await withAda(async (served) => {
    const { token } = await signIn(served);
    for (let i = 0; i < 3; i++) {
      served.clock.advance(80 * DAY_MS);
      assertEquals(await codeWith(served, token), null);
    }
    served.clock.advance(91 * DAY_MS);
    assertEquals([await codeWith(served, token), (await served.call("get_devices")).result.devices], [4, []]);
  });
});

test("/webui/sign-in is for the engine's own page, and says what is wrong", async () => {
  await withAda(async (served) => {
    for (const headers of [{ origin: "http://evil.example" }, { origin: "null" }]) {
      assertEquals((await signIn(served, PASSWORD, headers)).status, 403);
    }
    assertEquals((await signIn(served, "wrong")).error, "auth_error");
    for (const body of ["", "x", "[]", '{"email":1,"password":"x"}', '{"email":"a@b"}']) {
      assertEquals((await signIn(served, "", {}, body)).status, 400, body);
    }
    assertEquals((await signIn(served, "", {}, " ".repeat(20_000))).status, 413);
    assertEquals((await served.call("get_devices")).result.devices, []);
  });
});

test("/webui/sign-in and sign_in share their limits: passwords cannot be guessed twice as fast", async () => {
  await withAda(async (served) => {
    for (let i = 0; i < 3; i++) assertEquals((await signIn(served, "wrong")).status, 401);
    for (let i = 0; i < 2; i++) await served.call("sign_in", { email: EMAIL, password: "wrong" }, "192.168.7.78");
    const limited = await signIn(served);
    assertEquals([limited.status, limited.token], [429, undefined]);
    assert(Number(limited.retryAfter) > 0);
    assertEquals((await served.call("sign_in", { email: EMAIL, password: PASSWORD })).status, 429);
    served.clock.advance(61_000);
    assertEquals((await signIn(served)).status, 200);
  });
});

test("Devices.add() of more than 100 signs out the one that was not used for longest", async () => {
  const store = createStore(await loadPorts(), { kind: "memory" });
  try {
    const clock = new FakeClock();
    const devices = new Devices(store, clock);
    const account = { email: EMAIL, password: "record", created_at: 1, updated_at: 1 };
    const { id } = await (await store.open()).insertInto("accounts").values(account).returning("id")
      .executeTakeFirstOrThrow();
    const add = async () => (await devices.add({ id, email: EMAIL, record: "record" }, ""))!.token;
    const [first, second] = [await add(), await add()];
    clock.advance(2 * 3_600_000);
    assertEquals(await devices.holds(first), true);
    for (let i = 0; i < 99; i++) await add();
    assertEquals([await devices.holds(first), await devices.holds(second)], [true, false]);
    assertEquals((await devices.list()).length, 100);
    assertEquals(await devices.add({ id, email: EMAIL, record: "changed" }, ""), null);
  } finally {
    await store.close();
  }
});

test("deviceName() says what people call a device", () => {
  const table: [string, string][] = [
    [
      "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140 Safari/537.36",
      "Chrome · Linux",
    ],
    ["Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140 Safari/537.36 Edg/140", "Edge · Windows"],
    ["Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18 Mobile Safari/604.1", "Safari · iPhone"],
    ["Mozilla/5.0 (Web0S; Linux/SmartTV) Chrome/94", "Chrome · webOS"],
    ["", ""],
  ];
  for (const [userAgent, name] of table) assertEquals(deviceName(userAgent), name);
});
