#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes with libFuzzer, one target after the other: fuzz.sh SECONDS [TARGET…], all of test/fuzz when none is named.
# Inputs that it found grow in build/fuzz/corpus/TARGET from run to run; one that breaks something is named and kept in
# build/fuzz/findings. Last line: N passed, N failed (targets).
#
# fuzz.sh --keep [TARGET…] picks the few inputs that reach most of what all reach, as the new test/fuzz/corpus/TARGET.
# fuzz.sh --build builds all targets and no more.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=build/fuzz
usage="usage: fuzz.sh SECONDS [TARGET…] | --keep [TARGET…] | --build"
input_bytes_max=4096 # also what a kept input may have
kept_max=60
rss_mb=2048

what=${1:?$usage}
shift
[[ $what =~ ^[0-9]+$ || $what = --keep || $what = --build ]] || { echo "$usage" >&2; exit 2; }
all=()
for source in test/fuzz/fuzz_*.c; do
	target=${source#test/fuzz/fuzz_}
	all+=("${target%.c}")
done
targets=("$@")
[ ${#targets[@]} != 0 ] || targets=("${all[@]}")
mkdir -p $out/findings $out/bin

flags=(-std=c11 -g -O1 -fno-omit-frame-pointer -Icsrc/include -Icsrc -D_POSIX_C_SOURCE=200809L
	-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)

# All targets, when any source or header is newer: the whole takes seconds. From an archive, so that a target has in it
# what it reaches: one that did not change under a change of the rest stays the same to the byte.
build() {
	local source object newest nvml
	make --no-print-directory fakes || return
	nvml=$(make --no-print-directory --eval 'print-nvml:;@echo $(NVML)' print-nvml) || return
	newest=$(find csrc test/fuzz -name '*.[ch]' -printf '%T@\n' | sort -n | tail -1)
	[ "$(cat $out/built 2>/dev/null)" = "$newest ${all[*]}" ] && return
	rm -rf $out/obj
	for source in csrc/core/*.c csrc/text/*.c csrc/engine/*.c csrc/sim/{jobs,manifests,podtemplate,gangs}.c csrc/sim/replay.c csrc/probe/*.c; do
		object=$out/obj/${source%.c}.o
		mkdir -p "$(dirname "$object")"
		clang "${flags[@]}" -isystem "$nvml" -c "$source" -o "$object" || return
	done
	find $out/obj -name '*.o' -print0 | sort -z | xargs -0 ar rcsD $out/obj/all.a || return
	for target in "${all[@]}"; do
		clang "${flags[@]}" -fsanitize=fuzzer "test/fuzz/fuzz_$target.c" $out/obj/all.a \
			-o "$out/bin/$target" -lcjson -lyaml -lhwloc || return
	done
	echo "$newest ${all[*]}" >$out/built
}

# fuzz TARGET — false when it found something.
fuzz() {
	local target=$1 log=$out/$1.log code=0 runs new
	local options=(-max_total_time="$what" -rss_limit_mb=$rss_mb -max_len=$input_bytes_max -timeout=20 -reload=0
		-print_final_stats=1 -artifact_prefix="$out/findings/$target-")
	[ -e "test/fuzz/dict/$target" ] && options+=(-dict="test/fuzz/dict/$target")
	mkdir -p "$out/corpus/$target"
	"$out/bin/$target" "${options[@]}" "$out/corpus/$target" "test/fuzz/corpus/$target" >"$log" 2>&1 || code=$?
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	new=$(sed -n 's/^stat::new_units_added: *//p' "$log")
	echo "$target: ${runs:-0} runs, ${new:-0} new"
	if [ $code != 0 ]; then
		grep -m 3 -E 'does not hold|ERROR|runtime error|Assertion' "$log" | sed 's/^/    /'
		echo "    input: $(sed -n 's/.*Test unit written to //p' "$log" | tail -1), log: $log"
		return 1
	fi
}

# keep TARGET — libFuzzer's cover merge says which features each input reaches; greedily, the input that adds most comes next.
keep() {
	local target=$1 all=$out/keep/$1 features=$out/keep/$1.features folder
	rm -rf "$all" "$all.merged" "$features"
	mkdir -p "$all" "$all.merged"
	for folder in "$out/corpus/$target" "test/fuzz/corpus/$target"; do
		find "$folder" -type f -size -$((input_bytes_max + 1))c \
			-exec cp -t "$all" {} +
	done
	"$out/bin/$target" -set_cover_merge=1 -merge_control_file="$features" "$all.merged" "$all" \
		>"$out/$target.keep.log" 2>&1 || return
	awk -v most=$kept_max -v names="$all.names" '
		NR == 1 { inputs = $1 }
		NR > 2 && NR <= inputs + 2 { name[NR - 3] = $0 }
		$1 == "FT" { reaches[$2] = $0; for (i = 3; i <= NF; i++) all[$i] = 1 }
		END {
			for (kept = 0; kept < most; kept++) {
				best = -1; gain = 0
				for (at = 0; at < inputs; at++) {
					if (!(at in reaches)) continue
					n = split(reaches[at], feature, " "); adds = 0
					for (i = 3; i <= n; i++) adds += !(feature[i] in reached)
					if (adds == 0) delete reaches[at]
					if (adds > gain) { gain = adds; best = at }
				}
				if (best < 0) break
				n = split(reaches[best], feature, " ")
				for (i = 3; i <= n; i++) reached[feature[i]] = 1
				print name[best] > names
			}
			for (f in all) { total++; got += f in reached }
			printf "%d of %d features with %d of %d inputs\n", got, total, kept, inputs
		}' "$features" || return
	rm -rf "test/fuzz/corpus/$target"
	mkdir -p "test/fuzz/corpus/$target"
	xargs -d '\n' cp -t "test/fuzz/corpus/$target" <"$all.names"
}

passed=0 failed=0
if ! build >$out/build.log 2>&1; then
	tail -n 20 $out/build.log
	echo "0 passed, 1 failed"
	exit 1
fi
if [ "$what" = --build ]; then
	passed=${#all[@]}
elif [ "$what" = --keep ]; then
	for target in "${targets[@]}"; do
		printf '%s: ' "$target"
		keep "$target" && passed=$((passed + 1)) || failed=$((failed + 1))
	done
else
	# Two at a time: a target uses one core. Each says its lines at once when it has ended.
	for ((first = 0; first < ${#targets[@]}; first += 2)); do
		jobs=()
		for target in "${targets[@]:first:2}"; do
			(fuzz "$target" >"$out/$target.said" 2>&1) &
			jobs+=("$! $target")
		done
		for job in "${jobs[@]}"; do
			wait "${job%% *}" && passed=$((passed + 1)) || failed=$((failed + 1))
			cat "$out/${job#* }.said"
		done
	done
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
