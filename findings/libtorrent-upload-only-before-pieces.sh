#!/usr/bin/env bash
# A seed that says "upload_only" (BEP 21) while it has told of no piece yet, say because it checks its disk and names each
# piece when that is done, is left by libtorrent at its first HAVE, though that names a piece libtorrent lacks. With the same
# messages in the other order it downloads everything. Needs Debian's python3-libtorrent (2.0.8) and /usr/bin/python3; takes
# 30 s. Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >try.py <<'PY'
import hashlib, os, socket, struct, sys, threading, time
import libtorrent as lt

PIECE, COUNT = 32768, 8
data = os.urandom(PIECE * COUNT)
hashes = b"".join(hashlib.sha1(data[i:i + PIECE]).digest() for i in range(0, len(data), PIECE))
info = {b"name": b"a.bin", b"length": len(data), b"piece length": PIECE, b"pieces": hashes}
infohash = hashlib.sha1(lt.bencode(info)).digest()

def send(connection, kind, payload=b""):
    connection.sendall(struct.pack(">IB", len(payload) + 1, kind) + payload)

def seed(connection, is_said_first):
    incoming = connection.makefile("rb")
    incoming.read(68)
    connection.sendall(b"\x13BitTorrent protocol" + b"\0\0\0\0\0\x10\0\0" + infohash + b"-XX0001-" + os.urandom(12))
    def extended():
        send(connection, 20, b"\0" + lt.bencode({b"m": {}, b"upload_only": 1}))
    def tell():
        try:
            if is_said_first: extended()
            time.sleep(2)
            for piece in range(COUNT): send(connection, 4, struct.pack(">I", piece))
            if not is_said_first: extended()
            send(connection, 1)
        except OSError:
            pass
    threading.Thread(target=tell, daemon=True).start()
    try:
        while header := incoming.read(4):
            message = incoming.read(struct.unpack(">I", header)[0])
            if message[:1] != b"\6": continue
            piece, begin, length = struct.unpack(">III", message[1:])
            at = piece * PIECE + begin
            send(connection, 7, message[1:9] + data[at:at + length])
    except OSError:
        pass

def seen(folder, is_said_first):
    server = socket.create_server(("127.0.0.1", 0))
    def accept():
        while True: threading.Thread(target=seed, args=(server.accept()[0], is_said_first), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    session = lt.session({"listen_interfaces": "127.0.0.1:0", "enable_dht": False, "enable_lsd": False, "enable_upnp": False,
        "enable_natpmp": False, "enable_outgoing_utp": False, "out_enc_policy": 2, "alert_mask": lt.alert.category_t.peer_notification | lt.alert.category_t.connect_notification})
    torrent = session.add_torrent({"ti": lt.torrent_info({b"info": info}), "save_path": folder})
    torrent.connect_peer(server.getsockname())
    reason = "nothing"
    for _ in range(60):
        time.sleep(0.25)
        for alert in session.pop_alerts():
            if isinstance(alert, lt.peer_disconnected_alert): reason = alert.message().split("[libtorrent]: ")[-1]
        if torrent.status().is_seeding or "upload-only" in reason: break
    return f"{torrent.status().progress:.0%}", reason

first = seen("first", True)
last = seen("last", False)
print(f"libtorrent {lt.version}: upload_only, then all pieces by HAVE: {first[0]} downloaded, it leaves with: {first[1]}")
print(f"all pieces by HAVE, then upload_only: {last[0]}; most expect 100% both times")
sys.exit(0 if first[0] == "0%" and "uninteresting" in first[1] and last[0] == "100%" else 1)
PY
timeout 60 /usr/bin/python3 try.py
