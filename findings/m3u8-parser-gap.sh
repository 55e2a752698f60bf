#!/usr/bin/env bash
# EXT-X-GAP (RFC 8216bis, 4.4.4.7) marks a segment that must not be fetched. m3u8-parser lists such a segment like any other.
# Needs node and npm. Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent --ignore-scripts m3u8-parser@7.2.0 hls-parser@0.16.1
cat >try.mjs <<'JS'
import { parse } from "hls-parser";
import { Parser } from "m3u8-parser";
const text = `#EXTM3U
#EXT-X-VERSION:8
#EXT-X-TARGETDURATION:4
#EXTINF:4,
one.ts
#EXT-X-GAP
#EXTINF:4,
missing.ts
#EXTINF:4,
three.ts
`;
const parser = new Parser();
parser.push(text);
parser.end();
const [, gap] = parser.manifest.segments;
console.log(`m3u8-parser 7.2.0: ${JSON.stringify(gap)}; most expect a mark that says gap`);
console.log(`hls-parser 0.16.1: gap ${parse(text).segments[1].gap}`);
process.exit(gap.uri === "missing.ts" && !JSON.stringify(gap).toLowerCase().includes("gap") ? 0 : 1);
JS
node try.mjs
