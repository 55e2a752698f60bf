#!/usr/bin/python3
"""Makes odd torrents of version 2 with libtorrent and seeds them. Ends when its standard input does.

usage: odd_v2.py DIRECTORY

DIRECTORY/CASE/… holds the files of a case, DIRECTORY/CASE.torrent its torrent. Prints "READY <port>" when all are seeded.
"""
import os
import random
import sys
import threading
import time
import warnings

import libtorrent as lt

warnings.simplefilter("ignore", DeprecationWarning)

KIB = 1024
V2 = lt.create_torrent_flags_t.v2_only
HYBRID = 0

# Case: versions, bytes of a piece, files. A case of one file that is named like the case is a single-file torrent.
CASES = {
    "one byte": (V2, 16 * KIB, {"one byte": 1}),
    "one block": (V2, 64 * KIB, {"one block": 16 * KIB}),
    "one block and a byte": (V2, 64 * KIB, {"one block and a byte": 16 * KIB + 1}),
    "one piece": (V2, 64 * KIB, {"one piece": 64 * KIB}),
    "one piece and a byte": (V2, 64 * KIB, {"one piece and a byte": 64 * KIB + 1}),
    "three blocks of a piece": (V2, 64 * KIB, {"three blocks of a piece": 48 * KIB - 1}),
    "pieces of 16 KiB": (V2, 16 * KIB, {"pieces of 16 KiB": 3_000_000}),
    "pieces of 16 MiB": (V2, 16 * KIB * KIB, {"small": 100_000, "smaller": 7}),
    "more than 512 pieces": (V2, 16 * KIB, {"a": 520 * 16 * KIB + 5, "b": 50_000}),
    "an empty file": (V2, 64 * KIB, {"a": 100_000, "b": 0, "c": 100_000}),
    "an empty file first and last": (V2, 64 * KIB, {"a": 0, "b": 70_000, "c": 0}),
    "many tiny files": (V2, 64 * KIB, {f"{n:03}": 1 + n * 37 for n in range(150)}),
    "names that are numbers": (V2, 16 * KIB, {"10": 20_000, "9": 20_001, "1": 5}),
    "ten directories deep": (V2, 64 * KIB, {"/".join("abcdefghij") + "/file": 100_001, "a/z": 5}),
    "letters of many languages": (V2, 64 * KIB, {"фильм.bin": 20_000, "映画 🎬.bin": 70_000, "é": 9}),
    "a long name": (V2, 64 * KIB, {"x" * 200: 70_000, "y" * 200: 3}),
    "around a piece": (V2, 64 * KIB, {"a": 65_535, "b": 65_536, "c": 65_537}),
    "a directory of one file": (V2, 64 * KIB, {"sub/file": 90_000}),
    "the same file twice": (V2, 16 * KIB, {"a": 60_000, "b": 60_000, "c": 9}),
    "a private torrent": (V2, 64 * KIB, {"a private torrent": 150_000}),
    "a hybrid of pieces of 16 KiB": (HYBRID, 16 * KIB, {"a": 100_000, "b/c": 16_385, "b/d": 0}),
}


def make(root, case, flags, piece_bytes, files):
    is_single = list(files) == [case]
    for path, size in files.items():
        place = os.path.join(root, path) if is_single else os.path.join(root, case, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "wb") as file:
            # Files of one size have the same bytes.
            file.write(random.Random(size).randbytes(size))
    storage = lt.file_storage()
    lt.add_files(storage, os.path.join(root, case))
    maker = lt.create_torrent(storage, piece_bytes, int(flags))
    maker.set_priv(case == "a private torrent")
    lt.set_piece_hashes(maker, root)
    with open(os.path.join(root, case + ".torrent"), "wb") as file:
        file.write(lt.bencode(maker.generate()))


def end_with_stdin():
    sys.stdin.read()
    os._exit(0)


def main():
    threading.Thread(target=end_with_stdin, daemon=True).start()
    root = sys.argv[1]
    session = lt.session({
        "enable_dht": False, "enable_lsd": False, "enable_upnp": False, "enable_natpmp": False,
        "enable_incoming_utp": False, "enable_outgoing_utp": False, "allow_multiple_connections_per_ip": True,
        "listen_interfaces": "127.0.0.1:0", "alert_mask": 0, "active_seeds": 100, "active_limit": 100,
    })
    flags = lt.torrent_flags
    handles = []
    for case, how in CASES.items():
        make(root, case, *how)
        params = lt.add_torrent_params()
        params.ti = lt.torrent_info(os.path.join(root, case + ".torrent"))
        params.save_path = root
        params.flags &= ~(flags.paused | flags.auto_managed)
        handles.append(session.add_torrent(params))
    while not all(handle.status().is_seeding for handle in handles) or session.listen_port() == 0:
        time.sleep(0.03)
    print("READY", session.listen_port(), flush=True)
    threading.Event().wait()


main()
