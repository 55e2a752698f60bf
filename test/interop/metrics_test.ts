/** `/metrics` of an engine that has played, read by Prometheus's own Python library. */
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { assertEquals, assertGreater } from "@std/assert";
import { clip } from "../support/fixtures.ts";
import { seedFiles, serveEngine } from "../support/engine.ts";

/** Prints the families with the number of their samples, as JSON; fails for text that is not of the format. */
const PARSER = `
import json, sys
from prometheus_client.parser import text_string_to_metric_families
families = list(text_string_to_metric_families(sys.argv[1]))
for family in families:
    if family.type != "histogram": continue
    totals = {}
    for name, labels, value, *rest in family.samples:
        key = json.dumps({k: v for k, v in labels.items() if k != "le"}, sort_keys=True)
        series = totals.setdefault(key, {"buckets": [], "count": None})
        if name.endswith("_bucket"): series["buckets"].append((float(labels["le"]), value))
        if name.endswith("_count"): series["count"] = value
    for series in totals.values():
        counts = [count for _, count in sorted(series["buckets"])]
        assert counts == sorted(counts) and counts[-1] == series["count"], family.name
print(json.dumps({family.name: [family.type, len(family.samples)] for family in families}))
`;

test("Prometheus's own library reads /metrics when an engine has played", async () => {
  const seeder = await seedFiles([{ path: "film.mp4", bytes: clip("mp4-30fps.mp4") }]);
  const served = await serveEngine();
  try {
    const played = await fetch(`${served.url}/engine/getstream?magnet=${encodeURIComponent(seeder.magnet)}`);
    await played.arrayBuffer();
    const text = await (await fetch(`${served.url}/metrics`)).text();
    const { stdout } = await promisify(execFile)("/usr/bin/python3", ["-c", PARSER, text]);
    const families: Record<string, [string, number]> = JSON.parse(stdout);
    assertEquals(families["millrace_start_seconds"]?.[0], "histogram");
    assertEquals(families["millrace_peer_bytes"], ["counter", 4]);
    assertEquals(families["millrace_sessions"], ["gauge", 12]);
    for (
      const name of ["millrace_http_requests", "millrace_http_request_seconds", "millrace_event_loop_delay_seconds"]
    ) {
      assertGreater(families[name]?.[1] ?? 0, 0, name);
    }
  } finally {
    await served.close();
    await seeder.close();
  }
});
