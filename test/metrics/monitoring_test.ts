/** The dashboard and the alert rules name only what an engine reports. */
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { assert, assertEquals } from "@std/assert";
import { serveEngine } from "../support/engine.ts";

/** Labels that Prometheus adds. */
const ADDED = ["le", "instance"];
const SUFFIXES = { histogram: ["_bucket", "_sum", "_count"], counter: [""], gauge: [""] } as const;

function read(name: string): string[] {
  const file = new URL(`../../scripts/monitoring/${name}`, import.meta.url);
  const found: string[] = [];
  JSON.parse(readFileSync(file, "utf8"), (key, value) => {
    if (key === "expr") found.push(value);
    return value;
  });
  return found;
}

const namesIn = (expressions: readonly string[]) =>
  new Set(expressions.flatMap((expression) => expression.match(/\bmillrace_\w+/g) ?? []));

test("dashboard.json and alerts.json name only metrics that an engine reports, the dashboard nearly all of them", async () => {
  const engine = await serveEngine({});
  let text: string;
  try {
    text = await (await fetch(`${engine.url}/metrics`)).text();
  } finally {
    await engine.close();
  }
  const reported = new Set<string>();
  const families: string[] = [];
  for (const [, name, kind] of text.matchAll(/^# TYPE (\S+) (histogram|counter|gauge)$/gm)) {
    families.push(name!);
    for (const suffix of SUFFIXES[kind as keyof typeof SUFFIXES]) reported.add(name! + suffix);
  }
  const [dashboard, alerts] = [read("dashboard.json"), read("alerts.json")];
  assert(dashboard.length > 10 && alerts.length > 5);
  assertEquals([...namesIn([...dashboard, ...alerts])].filter((name) => !reported.has(name)), []);
  const shown = [...namesIn([...dashboard, ...alerts])].map((name) => name.replace(/_bucket$/, ""));
  assertEquals(families.filter((name) => !shown.includes(name)), ["millrace_build_info"]);
});

test("dashboard.json and alerts.json use only labels that the engine's metrics have", () => {
  const page = readFileSync(new URL("../../src/http/README.md", import.meta.url), "utf8");
  const rows = page.split("\n").filter((line) => line.startsWith("| `millrace_")).join("\n");
  const labels = [...read("dashboard.json"), ...read("alerts.json")].flatMap((expression) => [
    ...[...expression.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, list]) => list!.split(", ")),
    ...[...expression.matchAll(/\{(\w+)=/g)].map(([, label]) => label!),
  ]);
  assert(labels.length > 20);
  assertEquals(labels.filter((label) => !ADDED.includes(label) && !rows.includes(`\`${label}\``)), []);
});
