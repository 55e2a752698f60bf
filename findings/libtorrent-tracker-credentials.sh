#!/usr/bin/env bash
# libtorrent sends the name and password in the address of an HTTP tracker as they stand there: "p%40w" stays "p%40w". A
# password with "@", ":" or "/" cannot be written in a URL otherwise, so such a tracker refuses it. curl, Wget, aria2 and
# ffmpeg decode it (RFC 3986, 2.1). Needs Debian's python3-libtorrent (2.0.8), /usr/bin/python3 and curl. Exits with 0 while
# that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >try.py <<'PY'
import base64, http.server, subprocess, sys, threading
import libtorrent as lt

seen = {}
announced = threading.Event()
class Tracker(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        sent = base64.b64decode((self.headers["Authorization"] or "").removeprefix("Basic ")).decode()
        seen["curl" if "curl" in self.headers["User-Agent"] else "libtorrent"] = sent
        if "info_hash" in self.path: announced.set()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"d8:intervali1800e5:peers0:e")
    def log_message(self, *_): pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tracker)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://user:p%40w@127.0.0.1:{server.server_address[1]}/announce"
subprocess.run(["curl", "-s", "-o", "reply", url], check=True)
session = lt.session({"listen_interfaces": "127.0.0.1:0", "enable_dht": False, "enable_lsd": False, "enable_upnp": False,
    "enable_natpmp": False})
torrent = lt.parse_magnet_uri("magnet:?xt=urn:btih:" + "ab" * 20)
torrent.save_path = "."
torrent.trackers = [url]
torrent.flags &= ~(lt.torrent_flags.paused | lt.torrent_flags.auto_managed)
handle = session.add_torrent(torrent)
announced.wait(30)
print(f"libtorrent {lt.version}: user:p%40w@… in the tracker's address is sent as {seen.get('libtorrent')}; curl sends {seen.get('curl')}")
print("most expect user:p@w from both")
sys.exit(0 if seen == {"curl": "user:p@w", "libtorrent": "user:p%40w"} else 1)
PY
timeout 60 /usr/bin/python3 try.py
