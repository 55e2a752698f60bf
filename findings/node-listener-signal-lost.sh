#!/usr/bin/env bash
# Node: a listener that is to end by the option `signal` of addEventListener stays after that signal fired, when others were
# added to the same target and garbage was collected meanwhile. Needs node. Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >try.mjs <<'JS'
import { getEventListeners } from "node:events";
import { setTimeout } from "node:timers/promises";

const target = new EventTarget();
const enders = Array.from({ length: 10 }, () => new AbortController());
for (const { signal } of enders) target.addEventListener("end", () => {}, { signal });
for (let i = 0; i < 5; i++) {
  await setTimeout(20);
  globalThis.gc();
}
for (const ender of enders) ender.abort();
const left = getEventListeners(target, "end").length;
console.log(`Node ${process.version}: of 10 listeners whose signals fired, most expect 0 to stay; seen: ${left}`);
process.exit(left > 0 ? 0 : 1);
JS
node --expose-gc try.mjs
