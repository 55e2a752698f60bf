"""A UPnP control point on GUPnP: reports media servers, and calls and fetches what it is told to, one JSON object per line.

usage: control_point.py INTERFACE [ADDRESS]
"""
import json
import sys
import urllib.request

import gi

gi.require_version("GSSDP", "1.6")
gi.require_version("GUPnP", "1.6")
from gi.repository import Gio, GLib, GObject, GSSDP, GUPnP  # noqa: E402

DEVICE = "urn:schemas-upnp-org:device:MediaServer:1"
devices = {}


def say(**fields):
    print(json.dumps(fields), flush=True)


def available(_point, device):
    devices[device.get_udn()] = device
    say(available=device.get_udn(), name=device.get_friendly_name(), model=device.get_model_name())


def unavailable(_point, device):
    devices.pop(device.get_udn(), None)
    say(unavailable=device.get_udn())


def call(device, service, action, args, results):
    proxy = devices[device].get_service(service)
    wanted = GUPnP.ServiceProxyAction.new_from_list(action, list(args), list(args.values()))
    try:
        done = proxy.call_action(wanted, None)
        _ok, values = done.get_result_list(list(results), [GObject.TYPE_STRING] * len(results))
        return {"result": dict(zip(results, values))}
    except GLib.Error as error:
        return {"error": error.message, "code": error.code}


def get(url, method="GET", headers=None):
    request = urllib.request.Request(url, method=method, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            body = response.read()
            return {"status": response.status, "headers": dict(response.headers), "body": body.hex()}
    except urllib.error.HTTPError as error:
        return {"status": error.code, "headers": dict(error.headers), "body": error.read().hex()}


def told(channel, _condition):
    line = channel.readline()
    if not line:
        loop.quit()
        return False
    order = json.loads(line)
    number = order.pop("id")
    work = call if "action" in order else get
    try:
        say(id=number, **work(**order))
    except Exception as error:  # The test sees it.
        say(id=number, failure=repr(error))
    return True


if len(sys.argv) > 2:
    address = Gio.InetAddress.new_from_string(sys.argv[2])
    context = GUPnP.Context.new_full(sys.argv[1], address, 0, GSSDP.UDAVersion.VERSION_1_0)
else:
    context = GUPnP.Context.new(sys.argv[1], 0)
point = GUPnP.ControlPoint.new(context, DEVICE)
point.connect("device-proxy-available", available)
point.connect("device-proxy-unavailable", unavailable)
point.set_active(True)
GLib.io_add_watch(sys.stdin, GLib.IO_IN | GLib.IO_HUP, told)
loop = GLib.MainLoop()
loop.run()
