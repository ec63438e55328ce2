#!/bin/sh
# deb: "remove", "upgrade" or "purge"; rpm: how many are left afterwards.
set -e
# Only a purge: the folder holds credentials and what was configured, which a remove keeps.
if [ "$1" = purge ]; then
  rm -rf /etc/edge-syncer /var/lib/edge-syncer /var/lib/private/edge-syncer
fi
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload || true
