#!/usr/bin/env bash
# M3U: mpv and VLC look for the title after the first comma of an #EXTINF line, even if that stands in a quoted attribute, as
# in group-title="News, Talk". VLC also halves titles with " - " or a comma: it takes what is before for the artist, and lists
# the rest alone. Needs mpv (0.35), VLC (3.0) with its command line and ffmpeg; takes 20 s. Exits with 0 while that is so,
# else with 1.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; chmod 755 "$dir"; cd "$dir"
mkdir home; chmod 777 home
ffmpeg -v error -f lavfi -i testsrc=s=64x64:r=10:d=2 -c:v libx264 film.ts
titles=("Evening" "News, at nine" "News - at nine")
{
  echo "#EXTM3U"
  printf '#EXTINF:-1 group-title="News, Talk",%s\nfilm.ts\n' "${titles[0]}"
  for title in "${titles[@]:1}"; do printf '#EXTINF:-1 group-title="Films",%s\nfilm.ts\n' "$title"; done
} >list.m3u
mpv=$(mpv --no-config --vo=null --ao=null --length=0.1 --term-status-msg= --term-playing-msg='=${media-title}' list.m3u 2>&1 | tr -d '\0' | sed -n 's/^=//p' | paste -sd'|')
# VLC does not run as root.
as=(); ((UID)) || as=(setpriv --reuid 65534 --clear-groups)
vlc=$( (sleep 6; echo playlist; sleep 2; echo quit) |
  HOME=$dir/home timeout 60 "${as[@]}" /usr/bin/vlc -I rc --rc-fake-tty --vout dummy --aout dummy "$dir/list.m3u" 2>/dev/null |
  sed -nE 's/^\|[ *]+[0-9]+ - (.*) \([0-9:]+\).*/\1/p' | paste -sd'|')
echo "titles: $(IFS='|'; echo "${titles[*]}"), the first in the group \"News, Talk\"; most expect just these"
echo "$(mpv --version | sed -n '1s/ Copyright.*//p'): $mpv"
echo "VLC 3.0: $vlc"
[[ $mpv == ' Talk",Evening|News, at nine|News - at nine' && $vlc == 'Evening| at nine|at nine' ]]
