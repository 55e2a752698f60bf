#!/usr/bin/env bash
# VLC as an RTSP server sends RTP over UDP alone: it refuses the transport over the RTSP connection itself (RFC 2326, 10.12)
# with 461. A client that asks for TCP only, as is usual behind NAT (ffmpeg -rtsp_transport tcp), gets nothing. Needs VLC (3.0)
# with its command line, ffmpeg and python3. Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'kill ${pid:-} 2>/dev/null || true; sleep 0.5; rm -rf "$dir"' EXIT; chmod 755 "$dir"; cd "$dir"
ffmpeg -v error -f lavfi -i testsrc=s=64x64:r=10:d=20 -c:v libx264 film.ts
mkdir home; chmod 777 home
port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
url=rtsp://127.0.0.1:$port/film
# VLC does not run as root.
as=(); ((UID)) || as=(setpriv --reuid 65534 --clear-groups)
HOME=$dir/home "${as[@]}" /usr/bin/vlc -I dummy -q --loop "$dir/film.ts" --sout "#rtp{sdp=$url}" >/dev/null 2>&1 &
pid=$!
cat >try.py <<'PY'
import socket, sys, time
port, url = int(sys.argv[1]), sys.argv[2]
for _ in range(100):
    try: connection = socket.create_connection(("127.0.0.1", port)); break
    except OSError: time.sleep(0.2)
def ask(text):
    connection.sendall((text + "\r\n\r\n").encode())
    return connection.recv(65536).decode().splitlines()[0]
for _ in range(50):
    described = ask(f"DESCRIBE {url} RTSP/1.0\r\nCSeq: 1")
    if "200" in described: break
    time.sleep(0.2)
def setup(transport): return ask(f"SETUP {url}/trackID=0 RTSP/1.0\r\nCSeq: 2\r\nTransport: {transport}")
tcp, udp = setup("RTP/AVP/TCP;unicast;interleaved=0-1"), setup("RTP/AVP;unicast;client_port=5000-5001")
print(f"SETUP for TCP: {tcp}; for UDP: {udp}; most expect 200 for both")
sys.exit(0 if " 461 " in tcp and " 200 " in udp else 1)
PY
HOME=$dir/home "${as[@]}" /usr/bin/vlc --version 2>/dev/null | sed -n 1p
python3 try.py "$port" "$url"
seen=$(ffprobe -v error -rtsp_transport tcp "$url" 2>&1) && exit 1
echo "ffprobe -rtsp_transport tcp: ${seen##*: }"
