#!/bin/sh
# install_packages.sh FILE...: installs those Debian packages named in the files (one a line, # comments) that are missing.
# Starts no service: a policy-rc.d that is not there already forbids it for the time of the installation.
set -eu

# One at a time: make starts two of these at once.
exec 9<"$0"
flock 9

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
wait_s=600 # another installation may be under way
deadline=$(($(date +%s) + wait_s))
# Whoever reads the lists of packages, as a timer does behind a boot, locks them; apt-get waits for dpkg's lock alone.
until said=$(LC_ALL=C apt-get update -qq 2>&1); do
    case "$said" in *"Could not get lock"*) held=yes ;; *) held= ;; esac
    if [ -z "$held" ] || [ "$(date +%s)" -ge "$deadline" ]; then
        echo "$said" >&2
        exit 1
    fi
    sleep 2
done
# shellcheck disable=SC2086  # a list of words
apt-get -o DPkg::Lock::Timeout=$wait_s install -qq --no-install-recommends $missing >/dev/null
