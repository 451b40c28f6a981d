#!/bin/sh
# install_packages.sh FILE...: installs those Debian packages named in the files (one a line, # comments) that are missing.
# Starts no service: a policy-rc.d that is not there already forbids it for the time of the installation.
set -eu

missing=
for package in $(cat "$@" | sed 's/#.*//'); do
    dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed \
        || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "sluice needs these Debian packages, and there is no apt-get here:$missing" >&2
    exit 1
fi
if [ "$(id -u)" != 0 ]; then
    echo "sluice needs root to install Debian packages; or do it yourself: apt-get install$missing" >&2
    exit 1
fi

policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT INT TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
echo "Installing Debian packages:$missing"
export DEBIAN_FRONTEND=noninteractive
lock="-o DPkg::Lock::Timeout=600" # another installation may be under way
# shellcheck disable=SC2086  # lists of words
apt-get $lock update -qq
apt-get $lock install -qq --no-install-recommends $missing >/dev/null
