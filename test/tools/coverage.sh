#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Line coverage of csrc/core, csrc/text, csrc/engine and csrc/probe by the unit suites, the fixed cases and random instances of frond-sim, and the
# kept inputs of the fuzz targets. Prints each file and the totals; build/cov/missed lists the lines that nothing ran.
# Fails under 95 % in any folder. Last line: N passed, N failed.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=$PWD/build/cov
percent_min=95
oracle_count=300
oracle_verbs=(plan recover defrag preempt)
libs=(-lcjson -lyaml -lhwloc -lgcov) # gcov after the objects that count

# Every program is linked with the same objects, so that all runs count into the same files.
build() {
	local unity nvml source name
	local plain=(-std=c11 -O1 -Icsrc/include -Icsrc -D_POSIX_C_SOURCE=200809L)
	unity=$(make --no-print-directory --eval 'print-unity:;@echo $(UNITY)' print-unity) || return
	nvml=$(make --no-print-directory --eval 'print-nvml:;@echo $(NVML)' print-nvml) || return
	make --no-print-directory fakes || return
	rm -rf "$out"
	mkdir -p "$out/obj/core" "$out/obj/text" "$out/obj/engine" "$out/obj/probe" "$out/bin"
	for source in csrc/core/*.c csrc/text/*.c csrc/engine/*.c csrc/probe/*.c; do
		name=${source#csrc/}
		gcc "${plain[@]}" -O0 --coverage -isystem "$nvml" -c "$source" -o "$out/obj/${name%.c}.o" || return
	done
	local lib=("$out"/obj/*/*.o)
	gcc "${plain[@]}" csrc/sim/*.c "${lib[@]}" -o "$out/bin/frond-sim" "${libs[@]}" || return
	gcc "${plain[@]}" test/property/oracle.c -o "$out/bin/oracle" -lcjson -lyaml || return
	gcc -c -I"$unity" "$unity/unity.c" -o "$out/bin/unity.o" || return
	gcc "${plain[@]}" -c test/nvml/machine.c -o "$out/bin/machine.o" || return
	for source in test/unit/test_*.c; do
		[[ $source = */test_agent* ]] && continue # runs nothing of these folders that the others do not
		gcc "${plain[@]}" -I"$unity" "$source" "$out/bin/unity.o" "$out/bin/machine.o" "${lib[@]}" \
			-o "$out/bin/$(basename "$source" .c)" "${libs[@]}" || return
	done
	for source in test/fuzz/fuzz_*.c; do
		gcc "${plain[@]}" "$source" test/fuzz/replay.c csrc/sim/jobs.c csrc/sim/replay.c "${lib[@]}" \
			-o "$out/bin/$(basename "$source" .c)" "${libs[@]}" || return
	done
}

# attempt NAME COMMAND… — says when it fails: the coverage of tests that fail means nothing.
attempt() {
	local name=$1
	shift
	"$@" >"$out/log" 2>&1 && return
	tail -n 5 "$out/log"
	echo "coverage: $name failed"
	return 1
}

run() {
	local program name oracle=("$out/bin/oracle" --sim "$out/bin/frond-sim" --count $oracle_count --seed 1)
	for program in "$out"/bin/test_*; do
		attempt "$(basename "$program")" "$program" || return
	done
	for program in "$out"/bin/fuzz_*; do
		name=$(basename "$program")
		attempt "$name" "$program" "test/fuzz/corpus/${name#fuzz_}" || return
	done
	attempt sim test/sim/run.sh "$out/bin/frond-sim" || return
	for name in "${oracle_verbs[@]}"; do
		attempt "oracle $name" "${oracle[@]}" --verb "$name" || return
	done
}

# A header's lines are compiled into several objects: a line counts once, and as run when any of them ran it.
count() {
	local object
	for object in "$out"/obj/*/*.o; do
		gcov -t -o "$(dirname "$object")" "$object" >"${object%.o}.lines" || return
	done
	awk -F ':' -v min=$percent_min -v missed="sort -V >$out/missed" '
		function share(name) {
			return sprintf("%-28s %5d of %5d lines %6.1f %%", name, hit[name], total[name], 100 * hit[name] / total[name])
		}
		{ number = $2 + 0; mark = $1; gsub(/[ *]/, "", mark) }
		number == 0 && $3 == "Source" { file = $4; ours = file ~ /^csrc\/(core|text|engine|probe)\//; next }
		!ours || number == 0 || mark == "-" { next }
		{
			at = file ":" number
			if (!(at in lines)) { lines[at] = file; text[at] = substr($0, index($0, $2) + length($2) + 1) }
			if (mark !~ /^[#=]+$/) ran[at] = 1
		}
		END {
			for (at in lines) {
				split(lines[at], part, "/"); folder = part[1] "/" part[2]
				total[lines[at]]++; total[folder]++
				if (at in ran) { hit[lines[at]]++; hit[folder]++ }
				else print at ": " text[at] | missed
			}
			close(missed)
			for (file in total) if (file ~ /\.[ch]$/) print share(file) | "sort"
			close("sort")
			for (folder in total) if (folder !~ /\.[ch]$/) {
				print share(folder)
				passed += hit[folder] * 100 >= total[folder] * min
			}
			if (passed < 4) printf "coverage: under %d %%; the lines are in build/cov/missed\n", min
			printf "%d passed, %d failed\n", passed, 4 - passed
			exit passed < 4
		}' "$out"/obj/*/*.lines
}

mkdir -p "$out"
if ! (build) >"$out.log" 2>&1; then
	tail -n 20 "$out.log"
	echo "0 passed, 1 failed"
	exit 1
fi
if ! run; then
	echo "0 passed, 1 failed"
	exit 1
fi
count
