#!/bin/sh
# The engine with the runtime that this package brings, or else with Debian's.
if [ -x /usr/lib/millrace/node ]; then exec /usr/lib/millrace/node /usr/lib/millrace/millrace.mjs "$@"; fi
exec /usr/bin/node /usr/lib/millrace/millrace.mjs "$@"
