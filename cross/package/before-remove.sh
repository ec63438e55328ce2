#!/bin/sh
# deb: "remove" or "upgrade"; rpm: how many are left afterwards.
set -e
[ -d /run/systemd/system ] || exit 0
if [ "$1" = remove ] || [ "$1" = 0 ]; then
  systemctl disable --now edge-syncer-files.path edge-syncer.service || true
fi
