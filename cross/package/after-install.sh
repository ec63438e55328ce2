#!/bin/sh
# deb: "configure" and the version before, if there was one; rpm: how many are installed now.
set -e
# Nothing to do where systemd does not run, as in a container or while an image is made.
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload || true
# An upgrade restarts what runs; nothing is started that did not run.
if [ -n "$2" ] || [ "$1" = 2 ]; then
  systemctl try-restart edge-syncer.service || true
fi
