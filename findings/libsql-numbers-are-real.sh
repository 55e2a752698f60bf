#!/usr/bin/env bash
# @libsql/client binds every JavaScript number, and true and false, as REAL. Needs node and npm. Exits with 0 while that
# is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent @libsql/client@0.18.0
cat >try.mjs <<'JS'
import { readFileSync } from "node:fs";
import { createClient } from "@libsql/client";

const { version } = JSON.parse(readFileSync("node_modules/@libsql/client/package.json", "utf8"));
const db = createClient({ url: ":memory:" });
await db.execute("CREATE TABLE t (i INTEGER, s TEXT)");
await db.execute({ sql: "INSERT INTO t VALUES (?, ?)", args: [5, 5] });
const one = async (sql, args = []) => Object.values((await db.execute({ sql, args })).rows[0])[0];
const seen = [
  ["typeof(5)", "integer", "real", await one("SELECT typeof(?)", [5])],
  ["typeof(true)", "integer", "real", await one("SELECT typeof(?)", [true])],
  ["typeof(5n)", "integer", "integer", await one("SELECT typeof(?)", [5n])],
  ["7 / 2", "3", "3.5", await one("SELECT ? / 2", [7])],
  ["5 in a column of text", "5", "5.0", await one("SELECT s FROM t")],
  ["json_array(5)", "[5]", "[5.0]", await one("SELECT json_array(?)", [5])],
  ["5 in a column of integers", "integer", "integer", await one("SELECT typeof(i) FROM t")],
];
console.log(`@libsql/client ${version}, Node ${process.version}`);
for (const [what, expected, , found] of seen) console.log(`${what}: most expect ${expected}; seen: ${found}`);
process.exit(seen.every(([, , so, found]) => String(found) === so) ? 0 : 1);
JS
node try.mjs
