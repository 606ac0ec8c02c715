#!/usr/bin/env bash
# Unpacks the image of a release and runs it as a container would: as its user, in a read-only root, without capabilities.
# Needs root, for chroot: deploy/image/check.sh ogive-VERSION-TARGET.oci.tar
set -euo pipefail
image=$(realpath "$1")
work=$(mktemp -d)
pid=
end() {
  [ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true
  umount -l "$work/root/proc" 2>/dev/null || true
  umount -l "$work/root" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap end EXIT
mkdir -p "$work/layout" "$work/root"
tar -xf "$image" -C "$work/layout"
cd "$work/layout"
# Every blob has the digest of its name.
for blob in blobs/sha256/*; do
  echo "$(basename "$blob")  $blob"
done | sha256sum --check --quiet
for layer in $(grep -o '"Layers":\[[^]]*\]' manifest.json | grep -o 'blobs/sha256/[0-9a-f]*'); do
  tar -xzf "$layer" -C "$work/root"
done
config=$(grep -o '"Config":"[^"]*"' manifest.json | cut -d'"' -f4)
user=$(grep -o '"User":"[^"]*"' "$config" | cut -d'"' -f4)
[ "$user" = 65532:65532 ]
[ ! -e "$work/root/bin/sh" ] && [ ! -e "$work/root/usr/bin/sh" ]
# What a runtime makes before it mounts the root.
mkdir -p "$work/root/proc"
echo "127.0.0.1 localhost" > "$work/root/etc/hosts"
mount --bind "$work/root" "$work/root"
mount -o remount,bind,ro,nosuid,nodev "$work/root"
mount -t proc -o ro proc "$work/root/proc"
port=$(( 20000 + RANDOM % 20000 ))
chroot=$(command -v chroot)
inside() { exec env -i OGIVE_LISTEN="0.0.0.0:$port" "$chroot" --userspec="$user" "$work/root" /usr/local/bin/ogive "$@"; }
start=$(date +%s%N)
( inside demo ) > "$work/out" 2>&1 &
pid=$!
until ( inside health --ready ) 2>/dev/null; do
  [ $(( $(date +%s%N) - start )) -lt 30000000000 ] || { cat "$work/out"; exit 1; }
done
echo "ready after $(( ($(date +%s%N) - start) / 1000000 )) ms"
grep -q '^CapEff:[[:space:]]*0*$' "/proc/$pid/status"
grep -q '^Uid:[[:space:]]*65532' "/proc/$pid/status"
answer=$(curl -fsS "http://127.0.0.1:$port/graphql" -H 'content-type: application/json' -d '{"query":"{ me { name } }"}')
echo "$answer"
[ "$answer" = '{"data":{"me":{"name":"Ida Lindqvist"}}}' ]
# Names are looked up by the files of the image.
why=$( ( inside introspect http://localhost:1/graphql ) 2>&1 || true )
grep -qi 'refused' <<< "$why" || { echo "$why"; exit 1; }
kill -TERM "$pid"
wait "$pid"
pid=
grep -q 'stopped\|Stop' "$work/out"
if ( inside health ) 2>/dev/null; then
  echo "health is 0 although nothing serves"
  exit 1
fi
echo "the image runs"
