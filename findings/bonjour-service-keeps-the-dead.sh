#!/usr/bin/env bash
# A browser of bonjour-service goes on listing a device after the time to live of its records (RFC 6762, 10) when that device
# went away without saying so, unless the program calls expire() itself. Needs Linux, root (a network namespace), iproute2,
# node and npm. Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent --ignore-scripts bonjour-service@1.4.4 multicast-dns@7.2.5
cat >try.mjs <<'JS'
import { Bonjour } from "bonjour-service";
import mdns from "multicast-dns";
const at = { interface: "10.9.9.1", bind: "0.0.0.0" };
const device = mdns(at);
const name = "Kitchen._googlecast._tcp.local";
const ttl = 2;
const browser = new Bonjour(at).find({ type: "googlecast" });
let downs = 0;
browser.on("down", () => downs++);
setTimeout(() =>
  device.respond([
    { name: "_googlecast._tcp.local", type: "PTR", ttl, data: name },
    { name, type: "SRV", ttl, data: { port: 8009, target: "kitchen.local" } },
    { name, type: "TXT", ttl, data: ["id=1"] },
    { name: "kitchen.local", type: "A", ttl, data: "10.9.9.7" },
  ]), 500);
const listed = () => browser.services.map(({ name }) => name).join() || "nobody";
setTimeout(() => {
  const after = listed();
  browser.expire();
  console.log(`bonjour-service 1.4.4: records live 2 s; listed after 8 s: ${after}, "down" ${downs - (listed() === "nobody" ? 1 : 0)} times; after expire(): ${listed()}`);
  console.log(`most expect nobody, and "down" once`);
  process.exit(after === "Kitchen" && listed() === "nobody" ? 0 : 1);
}, 8500);
JS
unshare -n bash -c 'ip link set lo up; ip link add v0 type veth peer name v1; ip address add 10.9.9.1/24 dev v0
  ip link set v0 up; ip link set v1 up; ip route add default dev v0; node try.mjs'
