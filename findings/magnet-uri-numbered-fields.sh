#!/usr/bin/env bash
# A magnet link may number its fields (xt.1, tr.1, tr.2: how several of a kind are written), and the scheme of a URI has no
# case (RFC 3986, 3.1). magnet-uri, and so parse-torrent, knows neither. Needs node and npm. Exits with 0 while that is so,
# else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent --ignore-scripts magnet-uri@7.0.10
cat >try.mjs <<'JS'
import magnet from "magnet-uri";
const xt = "urn:btih:c12fe1c06bba254a9dc9f519b335aa7c1367a88a";
const read = (link) => {
  const { infoHash = "none", announce } = magnet(link);
  return `infohash ${infoHash.slice(0, 8)}, trackers ${announce.length}`;
};
const seen = [
  read(`magnet:?xt=${xt}&tr=http://one.example/announce&tr=http://two.example/announce`),
  read(`magnet:?xt=${xt}&tr.1=http://one.example/announce&tr.2=http://two.example/announce`),
  read(`magnet:?xt.1=${xt}`),
];
let capital;
try {
  capital = read(`MAGNET:?xt=${xt}`);
} catch (error) {
  capital = `${error.name}`;
}
console.log(`magnet-uri 7.0.10: tr and tr: ${seen[0]} | tr.1 and tr.2: ${seen[1]} | xt.1: ${seen[2]} | MAGNET: ${capital}`);
console.log("most expect the same infohash four times, and two trackers twice");
const so = seen[0].endsWith("c12fe1c0, trackers 2") && seen[1].endsWith("trackers 0") && seen[2].startsWith("infohash none");
process.exit(so && !capital.includes("c12fe1c0") ? 0 : 1);
JS
node try.mjs
