#!/bin/sh
# Runs a command where programs for arm64 and armhf run by Debian's qemu-user-static, as root:
#
#   sh scripts/emulated.sh mmdebstrap --mode=root --skip=check/qemu --architectures=arm64 --variant=minbase \
#     bookworm ROOT.tar
#   sh scripts/emulated.sh deno run -A scripts/test-root.ts ROOT.tar dist/millrace-bun-linux-arm64
#
# The kernel (Linux 6.7 or newer) learns of them in a namespace of its own: elsewhere on this machine nothing changes.
set -e
unshare --user --mount sleep infinity &
holder=$!
trap 'kill $holder' EXIT
until [ "$(readlink /proc/$holder/ns/user)" != "$(readlink /proc/self/ns/user)" ]; do sleep 0.1; done
echo 0 0 65536 >/proc/$holder/uid_map
echo 0 0 65536 >/proc/$holder/gid_map
nsenter --target $holder --user --mount --setuid 0 --setgid 0 --wd="$PWD" sh -ec '
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
learn() { printf "%s" ":$1:M::$2:$3:$4:F" >/proc/sys/fs/binfmt_misc/register; }
zeros="\x00\x00\x00\x00\x00\x00\x00\x00\x00"
mask="\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
learn arm64 "\x7fELF\x02\x01\x01${zeros}\x02\x00\xb7\x00" "$mask" /usr/bin/qemu-aarch64-static
learn armhf "\x7fELF\x01\x01\x01${zeros}\x02\x00\x28\x00" "$mask" /usr/bin/qemu-arm-static
exec "$@"' sh "$@"
