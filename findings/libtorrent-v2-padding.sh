#!/usr/bin/env bash
# libtorrent 2: the files of a torrent of version 2 alone have padding files among them, also one after the last, and these count
# in the numbers of the files. The file tree of BEP 52 knows none. Needs Debian's python3-libtorrent.
# Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
mkdir season
for name in one two three; do head -c 20000 /dev/zero >"season/$name.bin"; done
/usr/bin/python3 - <<'PY'
import sys
import libtorrent as lt
files = lt.file_storage()
lt.add_files(files, "season")
made = lt.create_torrent(files, 16384, int(lt.create_torrent_flags_t.v2_only))
lt.set_piece_hashes(made, ".")
torrent = lt.bdecode(lt.bencode(made.generate()))
tree = torrent[b"info"][b"file tree"]
read = lt.torrent_info(torrent).files()
names = [read.file_path(i) for i in range(read.num_files())]
pads = [bool(read.file_flags(i) & lt.file_storage.flag_pad_file) for i in range(read.num_files())]
print(f"libtorrent {lt.__version__}: {len(tree)} files in the tree, {len(names)} in files():")
for name, pad in zip(names, pads): print("  pad " if pad else "  file", name)
sys.exit(0 if len(tree) == 3 and pads == [False, True] * 3 else 1)
PY
