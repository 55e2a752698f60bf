#!/usr/bin/env bash
# ffmpeg's VOB muxer writes several pictures of H.264 into one PES packet, which has a time for the first of them alone. Those
# behind it have none when the file is read, and "-fflags +genpts" does not give them one. Needs Debian's ffmpeg.
# Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
ffmpeg -version | head -n 1
ffmpeg -v error -f lavfi -i testsrc2=s=320x180:r=25:d=4 -c:v libx264 -bf 2 -b:v 200k -f vob film.mpg
without() { ffprobe -v error "$@" -select_streams v -show_entries packet=pts_time -of csv=p=0 film.mpg | grep -c 'N/A' || true; }
all=$(ffprobe -v error -select_streams v -show_entries packet=pts_time -of csv=p=0 film.mpg | wc -l)
plain=$(without); made=$(without -fflags +genpts)
echo "pictures $all; without a time $plain; with +genpts $made"
((all >= 90 && plain > 10 && made > 10))
