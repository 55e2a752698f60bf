"""libtorrent as a rival: libtorrent_rival.py seed|download TORRENT DIRECTORY. READY when it may begin or seeds, DONE when complete."""
import sys
import time

import libtorrent as lt

sys.dont_write_bytecode = True
from libtorrent_session import add_torrent, open_session

mode, torrent, directory = sys.argv[1:4]
session = open_session({
    "unchoke_slots_limit": 100,
    "send_buffer_watermark": 3 << 20,
    "send_buffer_watermark_factor": 150,
    "alert_mask": 0,
})
info = lt.torrent_info(torrent)
if mode == "seed":
    handle = add_torrent(session, info, directory, seeds=True)
    while not handle.status().is_seeding:
        time.sleep(0.02)
    print("READY", session.listen_port(), flush=True)
else:
    print("READY", flush=True)
    handle = add_torrent(session, info, directory)
    while not handle.status().is_seeding:
        time.sleep(0.01)
    print("DONE", flush=True)
sys.stdin.read()
