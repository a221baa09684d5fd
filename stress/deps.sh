#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs the packages of deps.txt that are missing.  Nothing is asked and nothing is done when all are there.
set -eu
cd "$(dirname "$0")"
missing=
for p in $(grep -v '^#' deps.txt); do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
echo "installing:$missing" >&2
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq >&2
$sudo apt-get install -y -qq --no-install-recommends $missing >&2
