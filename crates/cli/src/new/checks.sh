#!/bin/sh
# What a change must pass: run it from any continuous integration, or before a commit.
#   checks.sh            this folder alone
#   checks.sh BASELINE   also against what serves now: a supergraph file or a folder of SDL files
set -eu
cd "$(dirname "$0")"
ogive config validate ogive.yaml
ogive compose supergraph.yaml --output /dev/null
ogive lint supergraph.yaml
ogive check supergraph.yaml --baseline "${1:-.}" --operations operations
