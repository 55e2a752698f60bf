#!/usr/bin/env bash
# AAC: what a decoder makes of a frame is said to depend on that frame and the one before it, for the overlap. ffmpeg's own
# encoder replaces noise by a note of its loudness (perceptual noise substitution), and ffmpeg's decoder fills that in from
# one generator that runs through the whole stream. So the same packets, decoded from another place, hardly ever give
# the same samples again. Needs ffmpeg (5.1) and python3. Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
decoded() { ffmpeg -v error -i "$1" -f s16le "$2"; }
for pns in 1 0; do
  ffmpeg -v error -f lavfi -i anoisesrc=d=6:c=pink:seed=5:r=48000 -c:a aac -aac_pns $pns -b:a 48k whole$pns.aac
  python3 - $pns <<'PY'
import sys
name = sys.argv[1]
data = open(f"whole{name}.aac", "rb").read()
at = 0
for _ in range(50): at += (data[at + 3] & 3) << 11 | data[at + 4] << 3 | data[at + 5] >> 5
open(f"rest{name}.aac", "wb").write(data[at:])
PY
  decoded whole$pns.aac whole$pns.raw
  decoded rest$pns.aac rest$pns.raw
done
echo "$(ffmpeg -version | sed -n '1s/ Copyright.*//p'); AAC of pink noise, decoded from frame 50 on, against the whole decoded:"
python3 - <<'PY'
import array, sys
FRAME = 1024
def same(name):
    whole, rest = (array.array("h", open(f"{part}{name}.raw", "rb").read()) for part in ("whole", "rest"))
    whole = whole[50 * FRAME:]
    frames = range(2, len(rest) // FRAME)
    return sum(whole[f * FRAME:(f + 1) * FRAME] == rest[f * FRAME:(f + 1) * FRAME] for f in frames), len(frames)
noise, plain = same("1"), same("0")
print(f"as ffmpeg encodes by default: {noise[0]} of {noise[1]} frames after the second are the same; with -aac_pns 0: {plain[0]}")
print("most expect all of them both times")
sys.exit(0 if noise[0] * 10 < noise[1] and plain[0] == plain[1] else 1)
PY
