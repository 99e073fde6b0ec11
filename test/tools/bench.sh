#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The engine on a generated cluster: time, and as a ratio to a scan of memory in the same process (frond-sim bench), then
# instructions by callgrind, which no other load on the machine can change. Prints Markdown.
set -euo pipefail
cd "$(dirname "$0")/../.."
sim=bin/frond-sim

# count CASE NODES — instructions of one run of the case
count() {
	local out
	out=$(mktemp)
	valgrind --tool=callgrind --callgrind-out-file="$out" --toggle-collect=bench_measured \
		$sim bench --case "$1" --nodes "$2" --repeat 1 >/dev/null 2>&1
	awk '/^(summary|totals):/{print $2; exit}' "$out"
	rm -f "$out"
}

$sim bench --nodes 100000
echo
echo "| instructions | 10,000 nodes | 100,000 nodes | ratio |"
echo "|---|---|---|---|"
for name in plan-1024 plan-8 refusal; do
	small=$(count $name 10000)
	large=$(count $name 100000)
	echo "| $name | $small | $large | $(awk -v a="$small" -v b="$large" 'BEGIN{printf "%.2f", b / a}') |"
done
