"""libtorrent behind a small HTTP server: libtorrent_stream.py SOURCE DIRECTORY. READY, then after a line URL of the only file.

SOURCE is a .torrent path or a magnet; DHT_NODE (host:port) is the first contact of the DHT, without it there is none. Pieces under a reader get deadlines, as streaming clients built on libtorrent do; settings favour a quick start.
"""
import os
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import libtorrent as lt

sys.dont_write_bytecode = True
from libtorrent_session import add_magnet, add_torrent, open_session

AHEAD_PIECES = 12
source, directory = sys.argv[1:3]
session = open_session({
    "alert_mask": lt.alert.category_t.status_notification | lt.alert.category_t.storage_notification,
    "connection_speed": 200,
    "torrent_connect_boost": 50,
    "tick_interval": 50,
    "request_queue_time": 1,
    "request_timeout": 3,
    "piece_timeout": 2,
    "initial_picker_threshold": 0,
    "whole_pieces_threshold": 0,
    "strict_end_game_mode": False,
    "close_redundant_connections": False,
}, os.environ.get("DHT_NODE", ""))
is_magnet = source.startswith("magnet:")
info = None if is_magnet else lt.torrent_info(source)
size = piece_length = 0
handle = None
pieces = {}
wanted = set()
arrived = threading.Condition()


def pump():
    while True:
        session.wait_for_alert(1000)
        for alert in session.pop_alerts():
            if isinstance(alert, lt.read_piece_alert):
                with arrived:
                    pieces[alert.piece] = bytes(alert.buffer)
                    wanted.discard(alert.piece)
                    arrived.notify_all()


def want(first):
    with arrived:
        for i in range(AHEAD_PIECES):
            piece = first + i
            if piece < info.num_pieces() and piece not in pieces and piece not in wanted:
                wanted.add(piece)
                handle.set_piece_deadline(piece, 100 + i * 500, 1)


def piece_data(piece):
    want(piece)
    with arrived:
        while piece not in pieces:
            arrived.wait()
        # A few pieces are kept; what was played is read again if asked for.
        for old in [p for p in pieces if abs(p - piece) > 2 * AHEAD_PIECES]:
            del pieces[old]
        return pieces[piece]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        match = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        begin = int(match.group(1)) if match else 0
        end = int(match.group(2)) + 1 if match and match.group(2) else size
        with arrived:
            # A jump: what the last reader waited for is no longer urgent.
            first = begin // piece_length
            if any(abs(p - first) > AHEAD_PIECES for p in wanted):
                handle.clear_piece_deadlines()
                wanted.clear()
        self.send_response(206 if match else 200)
        self.send_header("Content-Length", str(end - begin))
        self.send_header("Accept-Ranges", "bytes")
        if match:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{size}")
        self.end_headers()
        try:
            while begin < end:
                data = piece_data(begin // piece_length)
                offset = begin % piece_length
                part = data[offset:offset + min(end - begin, len(data) - offset)]
                self.wfile.write(part)
                begin += len(part)
        except OSError:
            self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("READY", flush=True)
sys.stdin.readline()
if is_magnet:
    handle, info = add_magnet(session, source, directory)
else:
    handle = add_torrent(session, info, directory)
size = info.total_size()
piece_length = info.piece_length()
threading.Thread(target=pump, daemon=True).start()
want(0)
print(f"URL http://127.0.0.1:{server.server_port}/", flush=True)
sys.stdin.read()
