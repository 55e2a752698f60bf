"""GStreamer's RTSP server, on a free port of loopback: rtsp_server.py FILE PROTOCOL [DIGEST USER PASSWORD].

FILE is a transport stream with H.264 and AAC. PROTOCOL is tcp or udp. Prints the port."""
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer

file, protocol = sys.argv[1:3]
Gst.init(None)
server = GstRtspServer.RTSPServer()
server.set_address("127.0.0.1")
server.set_service("0")
media = GstRtspServer.RTSPMediaFactory()
media.set_launch(
    f"( filesrc location={file} ! tsdemux name=d "
    "d. ! queue ! h264parse ! rtph264pay name=pay0 pt=96 config-interval=-1 "
    "d. ! queue ! aacparse ! rtpmp4gpay name=pay1 pt=97 )"
)
media.set_shared(True)
media.set_protocols(GstRtsp.RTSPLowerTrans.TCP if protocol == "tcp" else GstRtsp.RTSPLowerTrans.UDP)
if len(sys.argv) > 3:
    user, password = sys.argv[3:5]
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", "user")
    auth = GstRtspServer.RTSPAuth()
    auth.set_supported_methods(GstRtsp.RTSPAuthMethod.DIGEST)
    auth.add_digest(user, password, token)
    server.set_auth(auth)
    media.add_role_from_structure(
        Gst.Structure.new_from_string("user, media.factory.access=(boolean)true, media.factory.construct=(boolean)true")
    )
server.get_mount_points().add_factory("/live", media)
server.attach(None)
print("port", server.get_bound_port(), flush=True)
GLib.MainLoop().run()
