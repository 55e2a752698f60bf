#!/usr/bin/env bash
# ffmpeg -c copy to MPEG TS takes sound and pictures that MPEG TS has no name for (FLAC, Vorbis, PCM, AV1, VP9 …), warns, ends
# with 0, and writes what nothing can read again, ffmpeg included. Needs ffmpeg with these encoders. Exits with 0 while that
# is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
ffmpeg -version | sed -n 1p
echo "made, copied to MPEG TS, and what ffprobe finds in it; most expect an error, or the codec"
lost=0
try() {
  local name=$1 code=0
  shift
  ffmpeg -nostdin -v error "$@" -y source.mkv
  ffmpeg -nostdin -v error -i source.mkv -c copy -y copy.ts || code=$?
  local found; found=$(ffprobe -v error -show_entries stream=codec_name -of csv=p=0 copy.ts | sed -n 1p)
  echo "$name: exit code $code, $found"
  [[ $code == 0 && $found == bin_data ]] && lost=$((lost + 1)) || true
}
sound=(-f lavfi -i "sine=duration=1:sample_rate=48000" -ac 2)
picture=(-f lavfi -i "testsrc=size=320x180:rate=25:duration=0.4" -pix_fmt yuv420p)
try FLAC "${sound[@]}" -c:a flac
try Vorbis "${sound[@]}" -c:a libvorbis
try PCM "${sound[@]}" -c:a pcm_s16le
try VP9 "${picture[@]}" -c:v libvpx-vp9
try AV1 "${picture[@]}" -c:v libaom-av1 -cpu-used 8
((lost == 5))
