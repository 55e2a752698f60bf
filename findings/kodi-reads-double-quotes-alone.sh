#!/usr/bin/env bash
# Kodi's reader of channel lists (PVR IPTV Simple Client) takes attributes of M3U in double quotes alone. A value that holds
# such quotes, and therefore stands in single ones, is cut at its first blank, quote included: the group "'Late" for
# group-title='Late "show"'. A group by #EXTGRP holds for one entry there, not until the next. Needs Debian's kodi,
# kodi-pvr-iptvsimple (20.6.1), xvfb, curl and python3; takes a minute. Exits with 0 while that is so, else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'kill -9 ${kodi:-} ${screen:-} 2>/dev/null || true; wait 2>/dev/null; rm -rf "$dir"' EXIT; cd "$dir"
export HOME=$dir
data=.kodi/userdata
mkdir -p $data/addon_data/pvr.iptvsimple
port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >list.m3u <<'M3U'
#EXTM3U
#EXTINF:-1 group-title='Late "show"',One
http://127.0.0.1:9/1.ts
#EXTINF:-1 group-title='Plain',Two
http://127.0.0.1:9/2.ts
#EXTINF:-1,Three
#EXTGRP:Held
http://127.0.0.1:9/3.ts
#EXTINF:-1,Four
http://127.0.0.1:9/4.ts
M3U
setting() { echo "<setting id=\"$1\">$2</setting>"; }
{
  echo '<settings version="2">'
  setting services.webserver true; setting services.webserverport "$port"
  setting services.webserverauthentication false; setting services.zeroconf false
  echo '</settings>'
} >$data/guisettings.xml
{
  echo '<settings version="2">'
  setting kodi_addon_instance_enabled true; setting m3uPathType 0; setting m3uPath "$dir/list.m3u"; setting m3uCache false
  echo '</settings>'
} | tee $data/addon_data/pvr.iptvsimple/settings.xml >$data/addon_data/pvr.iptvsimple/instance-settings-1.xml
printf 'pcm.!default { type null }\nctl.!default { type null }\n' >.asoundrc
mkfifo display
Xvfb -displayfd 3 -screen 0 320x240x24 -nolisten tcp 3>display 2>/dev/null & screen=$!
read -r number <display
DISPLAY=:$number LIBGL_ALWAYS_SOFTWARE=1 KODI_AE_SINK=ALSA /usr/lib/*/kodi/kodi.bin --standalone --windowing=x11 >/dev/null 2>&1 & kodi=$!
cat >try.py <<'PY'
import json, sys, time, urllib.request

def call(method, **params):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{sys.argv[1]}/jsonrpc", body, {"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=20)).get("result")

def until(ask):
    for _ in range(90):
        try:
            if found := ask(): return found
        except OSError: pass
        time.sleep(1)
    sys.exit("Kodi does not get there")

until(lambda: call("JSONRPC.Ping"))
call("Addons.SetAddonEnabled", addonid="pvr.iptvsimple", enabled=True)
def groups():
    found = (call("PVR.GetChannelGroups", channeltype="tv") or {}).get("channelgroups", [])
    return found if len(found) > 1 else None
seen = {}
for group in until(groups):
    details = call("PVR.GetChannelGroupDetails", channelgroupid=group["channelgroupid"])["channelgroupdetails"]
    if group["label"] != "All channels": seen[group["label"]] = ",".join(sorted(c["label"] for c in details["channels"]))
print(f"Kodi 20 with pvr.iptvsimple 20.6.1 lists {seen}")
print("""most expect {'Late "show"': 'One', 'Plain': 'Two', 'Held': 'Four,Three'}""")
sys.exit(0 if seen == {"'Late": "One", "'Plain'": "Two", "Held": "Three"} else 1)
PY
timeout 150 python3 try.py "$port"
