#!/usr/bin/env bash
# A tracker's reply says when to ask again ("interval"), and how often a client may ask at most ("min interval"). aria2 asks
# each "min interval", and never waits for the other. Needs aria2 (1.36), python3; takes 15 s. Exits with 0 while that is so,
# else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >try.py <<'PY'
import hashlib, http.server, os, subprocess, sys, threading, time

asked = []
class Tracker(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked.append(time.monotonic())
        body = b"d8:intervali600e12:min intervali3e5:peers0:e"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tracker)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_address[1]}/announce".encode()
piece = os.urandom(16384)
with open("a.torrent", "wb") as file:
    file.write(b"d8:announce%d:%s4:infod6:lengthi16384e4:name1:a12:piece lengthi16384e6:pieces20:%see" % (len(url), url, hashlib.sha1(piece).digest()))
version = subprocess.run(["aria2c", "--version"], capture_output=True, text=True).stdout.splitlines()[0]
client = subprocess.Popen(["aria2c", "--no-conf", "-q", "--enable-dht=false", "--bt-enable-lpd=false", "a.torrent"])
time.sleep(14)
client.kill()
client.wait()
gaps = [round(later - earlier) for earlier, later in zip(asked, asked[1:])]
print(f"{version}: interval 600 s, min interval 3 s; asks again after {gaps} s; most expect once in 14 s")
sys.exit(0 if len(gaps) >= 3 and max(gaps) < 10 else 1)
PY
python3 try.py
