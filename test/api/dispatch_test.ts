import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { ApiError, toApiError } from "../../src/http/api/codes.ts";
import { MillraceError } from "../../src/errors.ts";
import { withEngine } from "./support.ts";

test("both paths answer, by GET and POST, in the envelope", async () => {
  await withEngine(async ({ call, engine }) => {
    for (const path of ["/server/api", "/service/api", "/server/api/", "/service/api/"]) {
      for (const method of ["GET", "POST"]) {
        const answer = await call("get_network_connection_status", {}, { path, init: { method } });
        assertEquals([answer.status, answer.result, answer.error], [200, { connected: false }, null]);
        assertEquals(answer.headers.get("content-type"), "application/json; charset=utf-8");
        assertEquals(answer.headers.get("x-content-type-options"), "nosniff");
        assertEquals(answer.headers.get("cache-control"), "no-store");
      }
      const form = { method: "POST", body: new URLSearchParams({ method: "get_network_connection_status" }) };
      assertEquals((await call("", {}, { path, init: form })).error, null);
      const json = {
        method: "POST",
        body: JSON.stringify({ method: "analyze_content_multi", api_version: 3, query: ["a,b"] }),
        headers: { "content-type": "application/json" },
      };
      assertEquals((await call("", {}, { path, init: json })).result, [{
        error: { message: "unknown protocol", code: 0 },
      }]);
      const url = `http://127.0.0.1:6878${path}?method=get_api_access_token`;
      const head = await engine.fetch(new Request(url, { method: "HEAD" }));
      assertEquals([head.status, await head.text()], [200, ""]);
      const put = await engine.fetch(new Request(url, { method: "PUT" }));
      assertEquals([put.status, put.headers.get("allow")], [405, "GET, HEAD, POST"]);
    }
  });
});

test("a failed call has no key `result`, on any of the API's paths", async () => {
  await withEngine(async ({ engine }) => {
    const paths = ["/server/api", "/service/api", "/search", "/webui/api/service"];
    for (const path of paths) {
      for (const query of ["method=no_such_method&page=x", "page=x&token=wrong"]) {
        const body = await (await engine.fetch(new Request(`http://127.0.0.1:6878${path}?${query}`))).json();
        assertEquals(Object.keys(body), ["error"], `${path}?${query}`);
      }
    }
  });
});

test("failures have the documented codes", async () => {
  await withEngine(async ({ call }) => {
    const table: [string, Record<string, string>, number | null][] = [
      ["", {}, 2],
      ["no_such_method", {}, 1],
      ["constructor", {}, 1],
      ["__proto__", {}, 1],
      ["get_network_connection_status", { api_version: "1" }, null],
      ["get_network_connection_status", { api_version: "2" }, null],
      ["get_network_connection_status", { api_version: "3" }, null],
      ["get_network_connection_status", { api_version: "" }, null],
      ["get_network_connection_status", { api_version: "4" }, 7],
      ["get_network_connection_status", { api_version: "x" }, 7],
    ];
    for (const [method, params, code] of table) {
      const { status, result, error } = await call(method, params);
      assertEquals([status, error?.code ?? null], [200, code], `${method} ${JSON.stringify(params)}`);
      if (code !== null) assertEquals([result, typeof error?.message], [undefined, "string"]);
    }
    const long = await call("x😀".repeat(100));
    assertEquals(long.error?.message, `unknown method: ${"x😀".repeat(32)}…`);
    const huge = await call("get_network_connection_status", { x: "y".repeat(70_000) });
    assertEquals([huge.status, huge.error?.code], [413, 3]);
  });
});

test("toApiError() keeps messages of internal failures to itself", () => {
  for (
    const error of [new MillraceError("io", "cannot read /home/user/x"), new TypeError("x is not a function"), "odd"]
  ) {
    assertEquals([toApiError(error).code, toApiError(error).message], [10, "internal error"]);
  }
  assertEquals(toApiError(new MillraceError("not_found", "no item 7")), new ApiError(5, "no item 7"));
});
