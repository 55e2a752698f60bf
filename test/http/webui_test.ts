/** How the web page is sent: what it may load, its size, and its addresses behind a proxy. */
import { Buffer } from "node:buffer";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { assert, assertEquals, assertLess, assertMatch } from "@std/assert";
import { withEngine } from "../api/support.ts";

const get = (path: string, headers: Record<string, string> = {}) =>
  new Request(`http://127.0.0.1:6878${path}`, { headers });

test("/, /webui/ and /docs send a page with a policy that allows no inline script and no frame", async () => {
  await withEngine(async ({ engine }) => {
    for (const path of ["/", "/webui", "/webui/", "/docs", "/docs/"]) {
      const response = await engine.fetch(get(path));
      assertEquals(response.status, 200, path);
      const policy = response.headers.get("content-security-policy")!;
      assertMatch(policy, /default-src 'none'/);
      assertMatch(policy, /frame-ancestors 'none'/);
      assert(!policy.includes("unsafe"), policy);
      const html = await response.text();
      assert(!/<script(?![^>]* src=)|<style| style=| on\w+=/.test(html), "nothing inline");
    }
  });
});

test("/ sends fields that only secure contexts know to those alone: elsewhere the console would fill with errors", async () => {
  await withEngine(async ({ engine }) => {
    const policyAt = async (address: string) => {
      const response = await engine.fetch(new Request(`${address}/`));
      assertEquals(response.status, 200, address);
      return response.headers.get("cross-origin-opener-policy");
    };
    assertEquals(await policyAt("http://127.0.0.1:6878"), "same-origin");
    assertEquals(await policyAt("http://localhost:6878"), "same-origin");
    assertEquals(await policyAt("http://tv.test:6878"), null);
  }, { allowedHosts: ["tv.test"] });
});

test("/webui/app.js and the others are sent packed, with a tag that saves sending them again", async () => {
  await withEngine(async ({ engine }) => {
    let packedBytes = 0;
    for (const name of ["app.js", "app.css", "docs.js", "docs.css", "hls.js", "texts/de.json"]) {
      const packed = await engine.fetch(get(`/webui/${name}`, { "accept-encoding": "br, gzip" }));
      assertEquals([packed.status, packed.headers.get("content-encoding")], [200, "gzip"], name);
      const bytes = await packed.arrayBuffer();
      if (name !== "hls.js") packedBytes += bytes.byteLength;
      const plain = await engine.fetch(get(`/webui/${name}`));
      assertEquals(plain.headers.get("content-encoding"), null);
      const unpacked = new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
      assertEquals(await unpacked.text(), await plain.text());
      const again = await engine.fetch(get(`/webui/${name}`, { "if-none-match": packed.headers.get("etag")! }));
      assertEquals(again.status, 304);
    }
    assertLess(packedBytes, 150_000);
  });
});

test("/webui/ass-worker.js alone may compile WebAssembly, and libass is sent as it was published", async () => {
  await withEngine(async ({ engine }) => {
    const worker = await engine.fetch(get("/webui/ass-worker.js"));
    const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'";
    assertEquals([worker.status, worker.headers.get("content-security-policy")], [200, policy]);
    await worker.body?.cancel();
    const { resolve } = createRequire(import.meta.url);
    for (
      const [name, file] of [["libass.wasm", "wasm/jassub-worker.wasm"], ["last-font.woff2", "default.woff2"]] as const
    ) {
      const response = await engine.fetch(get(`/webui/${name}`));
      assertEquals(response.headers.get("content-security-policy"), null, name);
      const published = readFileSync(resolve(`jassub/dist/${file}`));
      assertEquals(Buffer.compare(new Uint8Array(await response.arrayBuffer()), published), 0, name);
    }
  });
});

test("/webui/hls.js is the library as it was published, with subtitles", async () => {
  await withEngine(async ({ engine }) => {
    const file = createRequire(import.meta.url).resolve("hls.js/dist/hls.min.mjs");
    assertEquals(await (await engine.fetch(get("/webui/hls.js"))).text(), readFileSync(file, "utf8"));
  });
});

test("the page names its files below the path of --public-url", async () => {
  await withEngine(async ({ engine }) => {
    const html = await (await engine.fetch(get("/"))).text();
    assertMatch(html, /content="\/tv"/);
    assertMatch(html, /src="\/tv\/webui\/app\.js"/);
    const docs = await (await engine.fetch(get("/docs"))).text();
    assertMatch(docs, /href="\/tv\/webui\/docs\.css"/);
    assertMatch(docs, /src="\/tv\/webui\/docs\.js"/);
  }, { publicUrl: "https://example.org/tv/" });
});

test("the web page uses nothing that browsers offer to secure contexts alone", () => {
  const only =
    /\brandomUUID\b|\bcrypto\.subtle\b|\.wakeLock\b|\.serviceWorker\b|\.mediaDevices\b|\bnavigator\.(share|storage|credentials|locks|usb|bluetooth|permissions)\b|\bshow(Open|Save)FilePicker\b|\bcaches\./;
  const folder = new URL("../../src/webui/", import.meta.url);
  const names = readdirSync(folder, { recursive: true }).map(String).filter((name) => /\.tsx?$/.test(name));
  assertLess(20, names.length);
  for (const name of names) {
    // The bundles hold hls.js and hono, too, which look before they use such things.
    if (name.endsWith("assets.generated.ts")) continue;
    const source = readFileSync(new URL(name.replaceAll("\\", "/"), folder), "utf8");
    if (!name.endsWith("insecure.ts")) assert(!source.includes("clipboard"), `${name}: use copyText()`);
    assert(!only.test(source.replace(/\/\*[^]*?\*\//g, "")), `${name}: ${only.exec(source)}`);
  }
});
