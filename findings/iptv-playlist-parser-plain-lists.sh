#!/usr/bin/env bash
# The oldest form of M3U is a list of addresses, and #EXTINF is optional. iptv-playlist-parser loses each address without
# it: a list "#EXTM3U" with addresses alone has no items, one without "#EXTM3U" is "not valid". Needs node and npm. Exits
# with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent --ignore-scripts iptv-playlist-parser@0.15.2
cat >try.cjs <<'JS'
const { parse } = require("iptv-playlist-parser");
const read = (lines) => {
  try {
    return parse(lines.join("\n")).items.length;
  } catch ({ message }) {
    return message;
  }
};
const addresses = ["http://a.example/1.ts", "http://a.example/2.ts"];
const plain = read(["#EXTM3U", ...addresses]);
const mixed = read(["#EXTM3U", "#EXTINF:-1,One", ...addresses]);
const bare = read(addresses);
console.log(`iptv-playlist-parser 0.15.2: two addresses after #EXTM3U: ${plain}; the first with #EXTINF: ${mixed}; without #EXTM3U: ${bare}`);
console.log("most expect 2 each time");
process.exit(plain === 0 && mixed === 1 && bare === "Playlist is not valid" ? 0 : 1);
JS
node try.cjs
