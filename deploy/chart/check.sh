#!/usr/bin/env bash
# Renders the chart with helm for every set of values in ci/ and compares with what was rendered before.
# BLESS=1 writes the new rendering; read the difference.
set -euo pipefail
cd "$(dirname "$0")"
failed=0
kube=1.34.0
for values in ci/*.yaml; do
  expected="ci/expected/$(basename "$values")"
  helm lint --strict --quiet --kube-version "$kube" --values "$values" .
  rendered=$(helm template gateway . --kube-version "$kube" --namespace graph --values "$values")
  if [ -n "${BLESS:-}" ]; then
    mkdir -p ci/expected
    printf '%s\n' "$rendered" > "$expected"
  elif ! diff -u "$expected" <(printf '%s\n' "$rendered"); then
    failed=1
  fi
done
# What the gateway would refuse, the schema of the values refuses.
for wrong in config.listn=x config.hot_reload.enabled=maybe replica=2; do
  if helm template gateway . --kube-version "$kube" --set "$wrong" >/dev/null 2>&1; then
    echo "accepted: $wrong"
    failed=1
  fi
done
exit $failed
