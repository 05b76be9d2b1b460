#!/usr/bin/env bash
# Waits in a container for what horovodrun sends: an SSH server for its user.
#
#   docker/sshd.sh [PORT]      default: 2222
#
# It takes the keys of ~/.ssh/authorized_keys and nothing else.
set -euo pipefail

readonly HOST_KEY=$HOME/.ssh_host_key

[[ -f $HOST_KEY ]] || ssh-keygen -q -t ed25519 -N '' -f "$HOST_KEY"
exec /usr/sbin/sshd -D -e -p "${1:-2222}" -h "$HOST_KEY" -f /dev/null \
    -o PidFile=none -o PasswordAuthentication=no -o KbdInteractiveAuthentication=no
