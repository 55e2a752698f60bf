#!/usr/bin/env bash
# ffmpeg cannot copy RTSP with reordered (B) pictures into MPEG TS: RTP tells when a picture is shown, not when it is decoded, and
# the muxer ends with "first pts and dts value must be set". "-fflags +genpts" does not help; "-fflags nobuffer" does. Needs
# Debian's ffmpeg, gir1.2-gst-rtsp-server-1.0, gstreamer1.0-plugins-good, -bad and python3-gi.
# Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'kill ${pid:-} 2>/dev/null || true; rm -rf "$dir"' EXIT; cd "$dir"
ffmpeg -version | head -n 1
ffmpeg -v error -f lavfi -i testsrc2=s=320x180:r=25:d=20 -c:v libx264 -bf 2 -g 25 film.mkv
cat >serve.py <<'PY'
import gi, sys
gi.require_version("Gst", "1.0"); gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer
Gst.init(None)
server = GstRtspServer.RTSPServer(); server.set_address("127.0.0.1"); server.set_service("0")
factory = GstRtspServer.RTSPMediaFactory()
factory.set_launch("filesrc location=film.mkv ! matroskademux ! h264parse ! rtph264pay name=pay0 config-interval=1")
server.get_mount_points().add_factory("/film", factory)
server.attach(None)
print(f"GStreamer {Gst.version_string()}", file=sys.stderr)
print(server.get_bound_port(), flush=True)
GLib.MainLoop().run()
PY
/usr/bin/python3 serve.py >port & pid=$!
for _ in {1..50}; do [[ -s port ]] && break; sleep 0.2; done
pictures() {
  timeout 40 ffmpeg -v error -rtsp_transport tcp "$@" -i "rtsp://127.0.0.1:$(cat port)/film" -t 5 -c copy -f mpegts -y out.ts 2>log || true
  ffprobe -v error -select_streams v -count_packets -show_entries stream=nb_read_packets -of csv=p=0 out.ts 2>/dev/null | head -n 1 || true
}
plain=$(pictures); why=$(grep -o 'first pts and dts value must be set' log || true); genpts=$(pictures -fflags +genpts); nobuffer=$(pictures -fflags nobuffer)
echo "pictures written: ${plain:-0} ($why); with +genpts ${genpts:-0}; with nobuffer ${nobuffer:-0}"
[[ $why != "" ]] && ((${plain:-0} == 0 && ${genpts:-0} == 0 && ${nobuffer:-0} > 80))
