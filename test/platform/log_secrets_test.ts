/** The whole program at its most verbose log level: nothing it writes, to the log or elsewhere, contains a secret. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { serveWeb } from "../support/web.ts";
import { until } from "../support/until.ts";
import { quietFlags, run, start, withDirectory } from "./support.ts";

/** Long runs of the program, ms. */
const ENGINE_MS = 120_000;

test("logs and answers carry no password, token or key, however much is logged", () =>
  withDirectory(async (directory) => {
    const secrets = new Map<string, string>();
    /** A value that must not be seen, by name. */
    const secret = (name: string, value: string) => {
      secrets.set(name, value);
      return value;
    };
    const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
    const web = await serveWeb((request, response) => {
      const at = request.url ?? "";
      if (at.endsWith("/openid-configuration")) {
        response.end(JSON.stringify({ issuer: web.base, jwks_uri: `${web.base}/keys` }));
      } else if (at === "/keys") void exportJWK(publicKey).then((jwk) => response.end(JSON.stringify({ keys: [jwk] })));
      else if (at.startsWith("/list") && request.headers.authorization !== undefined) {
        secret("basic authorization", request.headers.authorization.replace(/^Basic /, ""));
        response.end("#EXTM3U\n#EXTINF:-1,One\nhttp://media.example/one.ts\n");
      } else {
        response.statusCode = at.startsWith("/broken") ? 500 : 401;
        response.end();
      }
    });
    const state = ["--state-dir", path.join(directory, "state")];
    const outputs: string[] = [];
    try {
      const password = secret("password", "Pa55-correct-horse");
      for (const [args, input] of [[["user", "add", "ada@example.org"], password]] as const) {
        const program = start([...args, ...state, "--log-level", "debug"]);
        program.child.stdin!.end(`${input}\n`);
        const { code, stdout, stderr } = await program.ended;
        assertEquals(code, 0, stderr);
        outputs.push(stdout, stderr);
      }
      // The only command whose output is a secret.
      const token = secret("access token", (await run(["token", ...state])).stdout.trim());
      const engine = start(
        [
          "serve",
          ...quietFlags(directory),
          ...["--log-level", "debug", "--log-format", "json", "--oidc-issuer", web.base, "--oidc-audience", "us"],
        ],
        {},
        ENGINE_MS,
      );
      const { http: url } = JSON.parse(await engine.firstLine);
      const answers: string[] = [];
      const call = async (method: string, params: Record<string, string> = {}, by: "GET" | "POST" = "POST") => {
        const query = new URLSearchParams({ method, token, ...params });
        const response = await fetch(by === "GET" ? `${url}/server/api?${query}` : `${url}/server/api`, {
          method: by,
          ...(by === "GET" ? {} : { body: query }),
        });
        const text = await response.text();
        answers.push(text);
        return JSON.parse(text);
      };

      // Right and wrong, in the body and in the query, whole and cut off.
      const email = "ada@example.org";
      assertEquals((await call("sign_in", { email, password })).result, "ok");
      assertEquals((await call("sign_in", { email, password }, "GET")).result, "ok");
      const wrong = secret("wrong password", "Wr0ng-battery-staple");
      assertEquals((await call("sign_in", { email, password: wrong })).error.code, 0);
      assertEquals((await call("sign_in", { email: wrong, password: wrong }, "GET")).error.code, 0);
      assertEquals((await call("sign_in", { email, password: `${wrong}${"x".repeat(9000)}` })).error.code, 3);
      const now = Math.floor(Date.now() / 1000);
      const idToken = (claims: object) =>
        new SignJWT({ iss: web.base, aud: "us", sub: "u1", iat: now, exp: now + 300, ...claims })
          .setProtectedHeader({ alg: "ES256" }).sign(privateKey);
      assertEquals((await call("sign_in", { idp_token: secret("ID token", await idToken({})) })).result, "ok");
      const refused = secret("refused ID token", await idToken({ aud: "them" }));
      assertEquals((await call("sign_in", { idp_token: refused }, "GET")).error.code, 0);
      assertEquals((await call("check_auth", { token: secret("wrong token", "ab".repeat(32)) })).error.code, 4);
      const auth = (await call("check_auth")).result;
      assertEquals(auth.login, "u1");
      answers.pop();
      secret("engine_auth_token", auth.engine_auth_token);
      secret("signing key", JSON.parse(readFileSync(path.join(directory, "state", "sign-in-key.json"), "utf8")).d);

      // External playlists with credentials of both kinds, one that works and others that fail.
      const list = secret("list password", "L1st-password");
      const add = (at: string, more: Record<string, string>) =>
        call("external_playlist_add", {
          ...{ type: "content", category: "c", name: "n", url: at, update_interval: "0", update_now: "1" },
          ...more,
        });
      const { result: id } = await add(`${web.base}/list.m3u`, { login: "ada", password: list });
      assert(Number.isInteger(id));
      await until("the list is read", async () => (await call("playlist_get")).result.total_items === 1);
      const inUrl = secret("password in a URL", "Ur1-password");
      for (const page of ["broken", "denied"]) {
        const { result } = await add(`${web.base}/${page}.m3u`, { login: "ada", password: list });
        assert((await call("external_playlist_update", { id: String(result) })).error !== null);
      }
      const withCredentials = web.base.replace("://", `://ada:${inUrl}@`);
      assert(Number.isInteger((await add(`${withCredentials}/list2.m3u`, {})).result));
      for (const page of ["broken", "denied"]) {
        await call("parse_m3u_playlist", { url: `${withCredentials}/${page}` });
        await call("analyze_content", { query: `${withCredentials}/${page}` }, "GET");
        await call("get_media_files", { url: `${withCredentials}/${page}` });
        await (await fetch(`${url}/engine/getstream?url=${encodeURIComponent(`${withCredentials}/${page}`)}`)).text();
      }
      await call("external_playlist_edit", {
        id: String(id),
        category: "c",
        name: "n",
        update_interval: "0",
        password: list,
      });
      await call("external_playlist_get");

      await call("sign_out");
      engine.kill("SIGTERM");
      const ended = await engine.ended;
      assertEquals(ended.code, 0, ended.stderr);
      outputs.push(ended.stdout, ended.stderr);
      assert(ended.stderr.split("\n").length > 10, "it was talkative");
      assertMatch(ended.stderr, /an API call failed/);

      const databaseToken = secret("database token", "D4tabase-token");
      const { stdout, stderr } = await run([
        ...quietFlags(directory),
        ...["--log-level", "debug", "--database-url", "http://127.0.0.1:1", "--database-token", databaseToken],
      ]);
      outputs.push(stdout, stderr);
      assertMatch(stderr, /database/);

      for (const [name, value] of secrets) {
        for (const shown of [value, encodeURIComponent(value), btoa(value), JSON.stringify(value).slice(1, -1)]) {
          for (const output of outputs) {
            assert(!output.includes(shown), `${name} in the log: ${lineWith(output, shown)}`);
          }
          for (const answer of answers) {
            assert(!answer.includes(shown), `${name} in an answer: ${answer.slice(0, 300)}`);
          }
        }
      }
      assertHidden(path.join(directory, "state"), secrets);
    } finally {
      await web.close();
    }
  }));

function lineWith(text: string, part: string): string {
  return text.split("\n").find((line) => line.includes(part)) ?? "";
}

/** Files of the engine may be read only by their owner, and contain no passwords at all. */
function assertHidden(stateDir: string, secrets: ReadonlyMap<string, string>): void {
  for (const name of readdirSync(stateDir, { recursive: true }) as string[]) {
    const file = path.join(stateDir, name);
    if (!statSync(file).isFile()) continue;
    const bytes = readFileSync(file);
    for (
      const kind of [
        "password",
        "wrong password",
        "list password",
        "password in a URL",
        "ID token",
        "engine_auth_token",
      ]
    ) {
      assert(!bytes.includes(secrets.get(kind)!), `${kind} in ${name}`);
    }
    if (/^(access-token|sign-in-key|millrace\.db|.*key)/.test(name)) {
      assertEquals(statSync(file).mode & 0o077, 0, name);
    }
  }
}
