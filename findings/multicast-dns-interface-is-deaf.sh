#!/usr/bin/env bash
# multicast-dns with its option `interface` binds to that address, and a socket that is bound to an address gets no multicast
# on Linux: it sends, and hears nothing, not even answers. With `bind: "0.0.0.0"` beside it all is well. Needs Linux, root (a
# network namespace), iproute2, node and npm. Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --no-audit --no-fund --silent --ignore-scripts multicast-dns@7.2.5
cat >try.mjs <<'JS'
import mdns from "multicast-dns";
const heard = (options) =>
  new Promise((resolve) => {
    const [device, viewer] = [mdns({ interface: "10.9.9.1", bind: "0.0.0.0" }), mdns(options)];
    let answers = 0;
    device.on("query", ({ questions }) => {
      if (questions.some(({ name }) => name === "tv.local")) device.respond([{ name: "tv.local", type: "A", ttl: 120, data: "10.9.9.1" }]);
    });
    viewer.on("response", () => answers++);
    viewer.on("ready", () => viewer.query("tv.local", "A"));
    setTimeout(() => {
      device.destroy();
      viewer.destroy();
      resolve(answers);
    }, 1500);
  });
const [given, both] = [await heard({ interface: "10.9.9.1" }), await heard({ interface: "10.9.9.1", bind: "0.0.0.0" })];
console.log(`multicast-dns 7.2.5: answers heard with interface: ${given}; with interface and bind 0.0.0.0: ${both}; most expect some in both`);
process.exit(given === 0 && both > 0 ? 0 : 1);
JS
unshare -n bash -c 'ip link set lo up; ip link add v0 type veth peer name v1; ip address add 10.9.9.1/24 dev v0
  ip link set v0 up; ip link set v1 up; ip route add default dev v0; node try.mjs'
