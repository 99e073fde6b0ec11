#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs one long step and says what it is, that it still runs, and how long it took. Usage: step.sh NAME COMMAND…
set -euo pipefail
name=$1
shift
echo "  $name …"
start=$SECONDS
"$@" &
work=$!
trap 'kill $work 2>/dev/null; exit 130' INT TERM
while kill -0 $work 2>/dev/null; do
	for _ in $(seq 60); do
		kill -0 $work 2>/dev/null || break
		sleep 0.5
	done
	kill -0 $work 2>/dev/null && echo "  $name … $((SECONDS - start)) s so far" || true
done
if wait $work; then
	echo "  $name: done in $((SECONDS - start)) s"
else
	code=$?
	echo "  $name: failed after $((SECONDS - start)) s (exit $code)" >&2
	exit $code
fi
