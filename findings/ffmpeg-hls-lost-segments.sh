#!/usr/bin/env bash
# ffmpeg, and so what is built on it, passes over segments of HLS that the server no longer has: "ffmpeg -i list -c copy"
# prints no error and ends with 0, and the film lacks that part. Needs ffmpeg (5.1) and python3. Exits with 0 while that is
# so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'kill ${pid:-} 2>/dev/null || true; rm -rf "$dir"' EXIT; cd "$dir"
ffmpeg -v error -f lavfi -i testsrc=s=64x64:r=10:d=6 -c:v libx264 -g 10 -hls_time 2 -hls_list_size 0 list.m3u8
python3 -u -m http.server 0 --bind 127.0.0.1 >server.log 2>&1 &
pid=$!
until port=$(grep -oP '(?<=port )\d+' server.log); do sleep 0.1; done
copy() { ffmpeg -v error -i "http://127.0.0.1:$port/list.m3u8" -c copy "$1.ts" 2>"$1.errors"; }
pictures() { ffprobe -v error -count_packets -show_entries stream=nb_read_packets -of csv=p=0 "$1.ts" | sed -n 1p; }
copy whole
code=0; rm list1.ts; copy part || code=$?
last=0; rm list0.ts; copy last || last=$?
echo "$(ffmpeg -version | sed -n '1s/ Copyright.*//p'): with the second of three segments gone it ends with $code, prints $(wc -l <part.errors) errors and writes $(pictures part) pictures of $(pictures whole)"
echo "with only the last one left it ends with $last and writes $(pictures last); most expect an error both times"
[[ $code == 0 && ! -s part.errors && $(pictures whole) == 60 && $(pictures part) == 40 && $last == 0 && $(pictures last) == 20 ]]
