#!/usr/bin/env bash
# @libsql/client on a local file: after one write that another process's lock refused (SQLITE_BUSY), later writes of the
# same client return ok, but are never committed. Needs node and npm. Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent @libsql/client@0.18.0
cat >try.mjs <<'JS'
import { readFileSync } from "node:fs";
import { createClient } from "@libsql/client";

const open = () => createClient({ url: "file:test.db", concurrency: 1, timeout: 0 });
const { version } = JSON.parse(readFileSync("node_modules/@libsql/client/package.json", "utf8"));
const [mine, other] = [open(), open()];
await other.execute("PRAGMA journal_mode = WAL");
await other.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)");

const writing = await other.transaction("write");
await writing.execute("INSERT INTO t VALUES (1)");
const refused = await mine.execute("INSERT INTO t VALUES (2)").then(() => "ok", (error) => error.code);
await writing.rollback();

const { rowsAffected } = await mine.execute("INSERT INTO t VALUES (3)");
const count = async (client) => (await client.execute("SELECT count(*) AS n FROM t WHERE a = 3")).rows[0].n;
const kept = await count(other);
const own = await count(mine);
// The refused statement goes.
for (let i = 0; i < 5; i++) {
  globalThis.gc();
  await new Promise((resolve) => setTimeout(resolve, 20));
}
const later = await count(mine);

console.log(`@libsql/client ${version}, Node ${process.version}`);
console.log(`an INSERT while another client writes: ${refused}`);
console.log(`the next INSERT, when nobody writes: ok, rowsAffected ${rowsAffected}`);
console.log(`most expect that everybody sees its row; seen by another client: ${kept}, by the same client: ${own}`);
console.log(`by the same client after a garbage collection: ${later}`);
process.exit(refused === "SQLITE_BUSY" && rowsAffected === 1 && kept === 0 && own === 1 && later === 0 ? 0 : 1);
JS
node --expose-gc try.mjs
