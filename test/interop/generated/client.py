"""A program over the client that openapi-generator makes of /openapi.json; does what client.ts does."""
import json
import sys

import millrace_client
from millrace_client.api.access_and_status_api import AccessAndStatusApi
from millrace_client.api.account_api import AccountApi
from millrace_client.api.any_method_api import AnyMethodApi
from millrace_client.api.content_api import ContentApi
from millrace_client.api.playback_api import PlaybackApi
from millrace_client.api.playlist_api import PlaylistApi
from millrace_client.api.search_api import SearchApi
from millrace_client.api.service_api import ServiceApi
from millrace_client.api.session_api import SessionApi
from millrace_client.model.call import Call

url, magnet = sys.argv[1:]
configuration = millrace_client.Configuration(host=url, api_key={"token": ""})
client = millrace_client.ApiClient(configuration)
access, content, playlist, session = (api(client) for api in (AccessAndStatusApi, ContentApi, PlaylistApi, SessionApi))

version = ServiceApi(client).get_version("get_version")
status = access.get_status()
without_token = playlist.playlist_get()
configuration.api_key["token"] = access.get_api_access_token().result.token


def add(title, infohash):
    return playlist.playlist_add_item(
        title=title, infohash=infohash, is_live=0, use_media_groups=False, tags='["a,b","c"]'
    ).result


ids = [add("First", "1" * 40), add("Second", "2" * 40)]
enabled = playlist.playlist_items_set_enabled(ids, True)
page = playlist.playlist_get(limit=1).result
found = SearchApi(client).search_playlist(query="secon", page_size=5).result
analysed = content.analyze_content_multi(["no,thing", "neither"])
auth = AccountApi(client).check_auth().result
missing = playlist.playlist_delete_item(99)
with open("list.m3u", "wb") as file:
    file.write(b"#EXTM3U\n#EXTINF:-1,Third\nhttp://127.0.0.1:1/third.m3u8\n")
with open("list.m3u", "rb") as file:
    task = playlist.playlist_import_post(file=file).result.task_id
kind = playlist.get_task(task).result.kind
called = AnyMethodApi(client).call_by_body(Call(method="check_auth", token=configuration.api_key["token"]))

begun = PlaybackApi(client).start_hls(
    magnet=magnet, format="json", use_api_events=True, next_file_indexes=[0]
).response
path = (begun.infohash, begun.playback_session_id)
stat = session.session_stat(*path)
event = session.session_event(*path, after=0)
stopped = session.session_command(*path, "stop")
gone = session.session_stat(*path)

# The client refuses what the engine would.
for wrong in (lambda: playlist.get_task("x"), lambda: playlist.playlist_get(titel="x"), lambda: playlist.get_task(0)):
    try:
        wrong()
        raise SystemExit("the client let a wrong parameter through")
    except (TypeError, ValueError):
        pass

print(json.dumps({
    "same_version": version.result.version == status.result.version.version,
    "without_token": without_token.error.code,
    "ids": ids,
    "enabled": enabled.result,
    "total": page.total_items,
    "titles": [item.title for item in page.playlist],
    "tags": [item.tags for item in page.playlist],
    "found": [result.name for result in found.results],
    "analysed": len(analysed.result),
    "auth": [auth.method, auth.package_color, auth.login],
    "missing": missing.error.code,
    "kind": kind,
    "called": called.error,
    "is_live": stat.response.is_live,
    "has_event": event.response.id > 0,
    "stopped": stopped.response,
    "gone": gone.error,
}))
