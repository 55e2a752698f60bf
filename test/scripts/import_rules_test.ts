import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { importFaults, importsOf } from "../../scripts/support/import-rules.ts";

const faults = (files: Record<string, string>) =>
  importFaults(Object.entries(files).map(([path, text]) => ({ path, text })));

test("importsOf() finds every form of import and nothing in comments or text", () => {
  const source = [
    'import a from "./a.ts";',
    'import type { B } from "./b.ts";',
    "export * from './c.ts';",
    'import "./d.ts";',
    'const e = await import("./e.ts");',
    '// import x from "./no.ts"',
    '/* from "./no.ts" */ const s = `from "./no.ts" ${f("./no.ts")} from "./no.ts"`;',
    'const r = /from "x"/; const q = \'import "./no.ts"\';',
    'import {\n  f,\n} from "./f.ts";',
  ].join("\n");
  assertEquals(importsOf(source).map(({ specifier, line }) => `${line} ${specifier}`), [
    "1 ./a.ts",
    "2 ./b.ts",
    "3 ./c.ts",
    "4 ./d.ts",
    "5 ./e.ts",
    "11 ./f.ts",
  ]);
});

test("importFaults() accepts imports that go down, and anything within a folder", () => {
  assertEquals(
    faults({
      "src/http/app.ts": 'import "../playback/session.ts"; import "../media/open.ts"; import "./b.ts"; import "hono";',
      "src/http/b.ts": 'import type { X } from "../ports.ts"; import "../bytes/a.ts"; import "../version.ts";',
      "src/swarm/a.ts": 'import "../storage/x.ts"; import "../errors.ts";',
      "src/config.ts": 'import "./config/parse.ts"; import "./errors.ts";',
      "src/mod.ts": 'export * from "./engine.ts"; export * from "./errors.ts";',
      "src/engine.ts": 'import "./wire/a.ts"; import "./http/app.ts";',
      "platform/main.ts": 'import "node:fs"; import "../src/engine.ts"; const b = Buffer.from(process.argv);',
    }),
    [],
  );
});

test("importFaults() reports back-imports, including types", () => {
  assertEquals(
    faults({
      "src/storage/a.ts": 'import type { Swarm } from "../swarm/types.ts";',
      "src/media/a.ts": '\nimport "../playback/a.ts";',
      "src/bytes/a.ts": 'import "../config.ts";',
      "src/errors.ts": 'import "./bytes/a.ts";',
      "src/newcomer/a.ts": 'import "../swarm/a.ts";',
      "src/wire/a.ts": 'import "../../platform/node/tcp.ts"; import "node:net";',
      "src/playback/a.ts": 'import "../engine.ts";',
    }),
    [
      "src/storage/a.ts:1: storage must not import swarm",
      "src/media/a.ts:2: media must not import playback",
      "src/bytes/a.ts:1: bytes must not import config",
      "src/errors.ts:1: errors must not import bytes",
      "src/newcomer/a.ts:1: src/newcomer has no place in the order of imports",
      "src/wire/a.ts:1: imports platform/node/tcp.ts from outside src/",
      "src/wire/a.ts:1: imports node:net; that belongs in platform/",
      "src/playback/a.ts:1: playback must not import engine",
    ],
  );
});

test("importFaults() reports runtime globals in code, not in comments, text, members or keys", () => {
  const source = [
    "// Deno, Bun, process and Buffer are fine here",
    'const s = "process.env" + `Buffer ${x.process()} Deno`;',
    "const o = { process: 1, Buffer: 2 }; o.process; a.Buffer;",
    "const processes = 1, BufferPool = 2, $process = 3;",
    "const bad = process.env.HOME;",
    "const worse = `${Buffer.from([])}`;",
    "const r = a / Deno / b;",
  ].join("\n");
  assertEquals(faults({ "src/bytes/a.ts": source }), [
    "src/bytes/a.ts:5: uses process; src/ has web-standard globals and its ports only",
    "src/bytes/a.ts:6: uses Buffer; src/ has web-standard globals and its ports only",
    "src/bytes/a.ts:7: uses Deno; src/ has web-standard globals and its ports only",
  ]);
});

test("importFaults() reports a cycle once, with its path", () => {
  assertEquals(
    faults({
      "src/wire/a.ts": 'import "./b.ts";',
      "src/wire/b.ts": 'import type { C } from "./c.ts";',
      "src/wire/c.ts": 'import "./a.ts";',
      "src/wire/d.ts": 'import "./a.ts";',
    }),
    ["import cycle: src/wire/a.ts → src/wire/b.ts → src/wire/c.ts → src/wire/a.ts"],
  );
});
