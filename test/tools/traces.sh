#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The engine on real data: builds test/data into build/ and prints its tables; last line: N passed, N failed.
# Usage: traces.sh [DATA], DATA holding lingjun/ and openb/ (default ../shared/data). The data is read in place.
set -euo pipefail
data=$(realpath -m "${1:-$(dirname "$0")/../../../shared/data}")
cd "$(dirname "$0")/../.."
for file in lingjun/topo.csv openb/openb_node_list_gpu_node.csv openb/openb_pod_list_{default,multigpu50}.csv; do
	if [ ! -r "$data/$file" ]; then
		echo "traces: $data/$file is not there: give the folder that holds lingjun/ and openb/ as the argument" >&2
		exit 2
	fi
done

objects=$(printf 'build/rel/%s\n' csrc/core/*.c csrc/text/*.c csrc/engine/*.c test/data/*.c | sed 's/\.c$/.o/')
traces=build/rel/test/data/traces
# shellcheck disable=SC2086 # one word per object
make --no-print-directory $objects >/dev/null || exit 1 # 2 is for missing data
# shellcheck disable=SC2086
gcc -o $traces $objects -lcjson -lyaml

code=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT
$traces lingjun "$data/lingjun/topo.csv" >"$out" || code=$?
[ $code -gt 1 ] || $traces openb "$data/openb" >>"$out" || code=$?
awk '/^[0-9]+ passed, [0-9]+ failed$/{p += $1; f += $3; next} {print} END{printf "%d passed, %d failed\n", p, f}' "$out"
exit $code
