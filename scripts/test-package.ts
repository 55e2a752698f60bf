/**
 * Smoke test of the npm package: packs `dist/npm`, which `build-package.ts` made, has publint and attw look at it, and
 * installs it from a registry on this machine into an empty project of each runtime, where it must do its job. It needs
 * `publint`, `attw`, `tsc`, `node`, `bun` and `deno` on the PATH, and the real registry for libSQL's library.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { run } from "../test/support/process.ts";
import { ROOT } from "./support/files.ts";
import { serveRegistry } from "./support/registry.ts";
import { exit } from "./support/runtimes.ts";
import { type Form, playsDemo, playsLive, serves } from "./support/smoke.ts";

const FOLDER = path.join(ROOT, "dist", "npm");
/** Time limit for a tool or an installation, ms. */
const TOOL_MS = 100_000;

const work = mkdtempSync(path.join(os.tmpdir(), "millrace-package-"));
const manifest = JSON.parse(readFileSync(path.join(FOLDER, "package.json"), "utf8"));
const tarball = path.join(work, `millrace-${manifest.version}.tgz`);
let ok = true;

/** Runs one check and prints how it went. */
async function check(name: string, action: () => Promise<unknown>): Promise<void> {
  try {
    await action();
    console.log(`${name}: good`);
  } catch (error) {
    console.log(`${name}: ${(error as Error).message}`);
    ok = false;
  }
}

/** Runs a program to its end; throws with all it wrote unless it ends with 0. */
async function tool(command: readonly [string, ...string[]], at: Partial<Form> = {}): Promise<void> {
  const [name, ...args] = command;
  const { code, text, stderr } = await run(name, args, { cwd: work, ...at, timeoutMs: TOOL_MS });
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}\n${text}${stderr}`);
}

/** An empty project for `runtime`, with caches of its own: another check's package of that name must not be found. */
function project(runtime: string, registry: string): Omit<Form, "command"> {
  const cwd = path.join(work, runtime);
  mkdirSync(cwd);
  // Deno takes packages from `node_modules` where there is a package.json, and needs none.
  if (runtime !== "deno") writeFileSync(path.join(cwd, "package.json"), '{ "type": "module" }\n');
  const cache = path.join(work, `${runtime}-cache`);
  return {
    cwd,
    env: {
      ...{ NPM_CONFIG_REGISTRY: registry, npm_config_registry: registry },
      ...{ npm_config_cache: cache, BUN_INSTALL_CACHE_DIR: cache, DENO_DIR: cache },
    },
  };
}

/** A program that embeds the engine. It must run, and its types must hold with everything that the package's types name. */
const embeds = (runtime: string) =>
  `import { createEngine, type Engine, type Ports } from "millrace";
import { createPorts } from "millrace/${runtime}";

const ports: Ports = createPorts({ log: { level: "error" } });
const engine: Engine = await createEngine(ports, { cache: "ram", dht: false, lsd: false, portMapping: false, peerPort: 0 });
const server = await ports.http.serve({ host: "127.0.0.1", port: 0 }, (request, from) => engine.fetch(request, from));
const { status } = await fetch(\`http://127.0.0.1:\${server.address.port}/\`);
await server.close(0);
await engine.close();
if (status !== 200) throw new Error(\`the page has status \${status}\`);
`;

await check("npm pack", () => tool(["npm", "pack", FOLDER, "--pack-destination", work]));
await check("publint", () => tool(["publint", tarball, "--strict"]));
// Programs in CommonJS import it by import(): `require` of a module that is ESM works from Node 22 on.
await check("attw", () => tool(["attw", tarball, "--ignore-rules", "cjs-resolves-to-esm"]));
const registry = await serveRegistry(manifest, readFileSync(tarball), "https://registry.npmjs.org/");
try {
  const node = project("node", registry.url);
  await check("npm install", () => tool(["npm", "install", "--no-audit", "--no-fund", "millrace"], node));
  await check("npx millrace demo", () => playsDemo({ ...node, command: ["npx", "millrace"] }));
  await check("millrace on Node", () => serves({ ...node, command: ["node_modules/.bin/millrace"] }));
  writeFileSync(path.join(node.cwd, "embeds.ts"), embeds("node"));
  await check("its types", () =>
    tool([
      ...["tsc", "--strict", "--module", "nodenext", "--target", "esnext", "--lib", "esnext,dom"] as const,
      ...["--exactOptionalPropertyTypes", "embeds.ts"],
    ], node));
  await check("the library on Node", () => tool(["node", "embeds.js"], node));

  const bun = project("bun", registry.url);
  await check("bun add", () => tool(["bun", "add", "millrace"], bun));
  await check("bunx millrace demo", () => playsDemo({ ...bun, command: ["bunx", "--bun", "millrace"] }));
  await check("millrace on Bun", () => serves({ ...bun, command: ["bun", "node_modules/millrace/millrace.js"] }));
  writeFileSync(path.join(bun.cwd, "embeds.ts"), embeds("bun"));
  await check("the library on Bun", () => tool(["bun", "embeds.ts"], bun));

  const deno = project("deno", registry.url);
  const start = ["deno", "run", "-A", "npm:millrace"] as const;
  await check("deno run -A npm:millrace demo", () => playsDemo({ ...deno, command: start }));
  await check("millrace on Deno", () => serves({ ...deno, command: start }));
  writeFileSync(path.join(deno.cwd, "deno.json"), '{ "imports": { "millrace": "npm:millrace" } }\n');
  writeFileSync(path.join(deno.cwd, "embeds.ts"), embeds("deno"));
  await check("the library on Deno", () => tool(["deno", "run", "-A", "--check", "embeds.ts"], deno));

  // They mostly wait for the broadcast.
  await Promise.all([
    check("live on Node", () => playsLive({ ...node, command: ["node_modules/.bin/millrace"] })),
    check("live on Bun", () => playsLive({ ...bun, command: ["bun", "node_modules/millrace/millrace.js"] })),
    check("live on Deno", () => playsLive({ ...deno, command: start })),
  ]);
} finally {
  await registry.close();
  rmSync(work, { recursive: true, force: true });
}
exit(ok);
