"""libtorrent as a rival: libtorrent_rival.py seed|download TORRENT DIRECTORY. READY when it may begin or seeds, DONE when complete."""
import sys
import time

import libtorrent as lt

mode, torrent, directory = sys.argv[1:4]
session = lt.session({
    "listen_interfaces": "127.0.0.1:0",
    "enable_dht": False,
    "enable_lsd": False,
    "enable_upnp": False,
    "enable_natpmp": False,
    "enable_incoming_utp": False,
    "enable_outgoing_utp": False,
    "allow_multiple_connections_per_ip": True,
    "unchoke_slots_limit": 100,
    "send_buffer_watermark": 3 << 20,
    "send_buffer_watermark_factor": 150,
    "alert_mask": 0,
})
params = lt.add_torrent_params()
params.ti = lt.torrent_info(torrent)
params.save_path = directory
if mode == "seed":
    params.flags |= lt.torrent_flags.seed_mode
    handle = session.add_torrent(params)
    while not handle.status().is_seeding:
        time.sleep(0.02)
    print("READY", session.listen_port(), flush=True)
else:
    print("READY", flush=True)
    handle = session.add_torrent(params)
    while not handle.status().is_seeding:
        time.sleep(0.01)
    print("DONE", flush=True)
sys.stdin.read()
