#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How good the tests are: makes small wrong changes to the parts of the core that decide, one at a time, and counts how
# many the tests notice: mutants.sh [COUNT=200] [SEED]. JOBS=2 at a time. Fails under 90 %.
#
# Works on a copy under build/mutants/tree. Every verdict is a line of build/mutants/results (number, status, file, line,
# change, the line's text, who noticed), so a run that was stopped goes on where it was; other sources or another seed
# start afresh. What does not compile with -Wall -Wextra -Werror is drawn again. A change that can make no difference is
# listed in mutants.equivalent with the reason and drawn again too.
set -uo pipefail
cd "$(dirname "$0")/../.."
count=${1:-200}
jobs=${JOBS:-2}
percent_min=90
model_steps=3000
cheap_ms=300
place_steps=2500 # what is mutated plans; test_place_best asks the oracle's judge without a process for each question
oracle_verbs=(plan recover defrag preempt reserve)
home=$PWD out=$PWD/build/mutants
tree=$out/tree results=$out/results equivalent=$PWD/test/tools/mutants.equivalent
mutated=(csrc/core/place*.c csrc/core/gpuset*.c csrc/core/ledger*.c csrc/core/gang*.c)
flags=(-std=c11 -O1 -g0 -fPIC -Icsrc/include -Icsrc -D_POSIX_C_SOURCE=200809L)
export FROND_MODEL_CALLS=$model_steps FROND_PLACE_STEPS=$place_steps FROND_SEED=1
if ! [[ $count =~ ^[1-9][0-9]*$ && ${2:-0} =~ ^[0-9]+$ && $# -le 2 ]]; then
	echo "usage: mutants.sh [COUNT=200] [SEED]" >&2
	exit 2
fi

# ---- the tree as it is ------------------------------------------------------------------------------------------------

# The library is shared and its symbols visible, so that a mutant costs one compilation and one link.
build() {
	local unity source object
	unity=$(make --no-print-directory --eval 'print-unity:;@echo $(UNITY)' print-unity) || return
	rm -rf "$tree" "$out/bin" "$out/lib" "$out/trial"
	mkdir -p "$tree/test" "$out/bin" "$out/lib"
	cp -r csrc shim docs "$tree/" && cp -r test/unit test/property test/sim "$tree/test/" && cd "$tree" || return
	gcc -std=c11 -O1 -o "$out/bin/mutate" "$home/test/tools/mutate.c" || return
	for source in csrc/core/*.c csrc/text/*.c csrc/engine/*.c; do
		gcc "${flags[@]}" -c "$source" -o "$out/lib/$(basename "$source" .c).o" || return
	done
	gcc -shared -o "$out/lib/libmutant.so" "$out"/lib/*.o -lcjson -lyaml || return
	gcc "${flags[@]}" csrc/sim/*.c -o "$out/bin/frond-sim" -L"$out/lib" -lmutant -lcjson -lyaml || return
	gcc "${flags[@]}" test/property/oracle.c -o "$out/bin/oracle" -lcjson -lyaml || return
	gcc "${flags[@]}" -I"$unity" -c "$unity/unity.c" -o "$out/bin/unity.o" || return
	for source in test/unit/test_*.c; do
		[[ $source = */test_@(probe|agent)* ]] && continue # knows nothing of the core
		object=$out/bin/$(basename "$source" .c)
		gcc "${flags[@]}" -I"$unity" "$source" "$out/bin/unity.o" -o "$object" -L"$out/lib" -lmutant -lcjson -lyaml || return
	done
}

# suite NAME — runs one against the library of LD_LIBRARY_PATH.
suite() {
	local count=300
	case $1 in
	sim) "$tree/test/sim/run.sh" "$out/bin/frond-sim" ;;
	*-first) FROND_PLACE_STEPS=120 "$out/bin/${1%-first}" ;; # what is most wrong is found in a moment
	oracle-*) "$out/bin/oracle" --sim "$out/bin/frond-sim" --verb "${1#oracle-}" --count $count --seed 1 ;;
	*) "$out/bin/$1" ;;
	esac
}

# reach PROGRAM — the objects of the library that its symbols lead to.
reach() {
	{ nm -u "$1" && nm -gA "$out"/lib/*.o; } | awk '
		!/\.o:/ { todo[$NF]; next }
		{ object = $0; sub(/\.o:.*/, ".o", object); sub(/.*\//, "", object) }
		$(NF - 1) ~ /U$/ { uses[object] = uses[object] " " $NF; next }
		{ home[$NF] = object }
		END {
			do {
				more = 0
				for (symbol in todo) if (symbol in home && !(home[symbol] in reached)) {
					reached[home[symbol]]
					count = split(uses[home[symbol]], next_ones, " ")
					for (i = 1; i <= count; i++) todo[next_ones[i]]
					more = 1
				}
			} while (more)
			for (object in reached) printf " %s", object
		}'
}

# Only suites that reach the core count. On the sources as they are each passes; how much time of the processor it takes
# gives the order among those of one turn, and how much a mutant has: a busy machine must not look like a test that noticed
# something. The judge of plans notices most: a little of it comes first, and all of it before the other long ones.
measure() {
	local name ms program turn TIMEFORMAT='%U %S'
	: >"$out/suites.unsorted"
	export LD_LIBRARY_PATH=$out/lib
	for name in $(cd "$tree/test/unit" && grep -lE '"(cluster\.h|core/)' test_*.c) test_place_best-first sim \
		"${oracle_verbs[@]/#/oracle-}"; do
		name=${name%.c}
		if ! { time suite "$name" >"$out/base.log" 2>&1; } 2>"$out/base.time"; then
			tail -n 5 "$out/base.log"
			echo "mutants: $name fails on the sources as they are"
			return 1
		fi
		ms=$(awk '{printf "%d", ($1 + $2) * 1000}' "$out/base.time")
		program=$out/bin/${name%-first}
		[ -e "$program" ] || program=$out/bin/frond-sim
		case $name in
		*-first) turn=1 ;;
		test_place_best | test_place_random | test_place_limits | test_gpuset) turn=$((ms < cheap_ms ? 2 : 3)) ;;
		*) turn=$((ms < cheap_ms ? 2 : 4)) ;;
		esac
		echo "$turn $ms $name$(reach "$program")" >>"$out/suites.unsorted"
	done
	sort -n -k 1,1 -k 2,2 "$out/suites.unsorted" | cut -d ' ' -f 2- >"$out/suites"
}

# ---- one mutant ---------------------------------------------------------------------------------------------------------

# judge NUMBER FILE SITE LINE CHANGE TEXT — leaves one line in results.
judge() {
	local work=$out/trial/$1 file=$2 site=$3 line=$4 change=$5 text=$6 status=survived by=- ms name reached
	local object
	object=$(basename "$file" .c).o
	if awk -F '\t' -v file="$file" -v text="$text" -v change="$change" \
		'!/^#/ && $1 == file && $2 == text && ($3 == change || $3 == "*") {found = 1} END {exit !found}' "$equivalent"; then
		status=equivalent
	else
		mkdir -p "$work/lib"
		"$out/bin/mutate" "$tree/$file" "$site" >"$work/$(basename "$file")"
		if ! (cd "$tree" && gcc "${flags[@]}" -Wall -Wextra -Werror -c "$work/$(basename "$file")" -o "$work/$object" &&
			gcc -shared -o "$work/lib/libmutant.so" "$work/$object" $(ls "$out"/lib/*.o | grep -v "/$object\$") \
				-lcjson -lyaml) >"$work/log" 2>&1; then
			status=uncompiled
		else
			export LD_LIBRARY_PATH=$work/lib
			ulimit -v 4000000 -c 0
			while read -r ms name reached; do
				[[ " $reached " == *" $object "* ]] || continue # it cannot notice
				if ! (ulimit -t "$((2 + ms / 200))" && timeout "$((60 + ms / 20))" \
					bash -c "$(declare -f suite); suite $name") >"$work/log" 2>&1; then
					status=noticed by=$name
					break
				fi
			done <"$out/suites"
		fi
		rm -rf "$work"
	fi
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$status" "$file" "$line" "$change" "$text" "$by" >>"$results"
}

# ---- all ------------------------------------------------------------------------------------------------------------------

tally() { # STATUS
	awk -F '\t' -v status="$1" '$2 == status {n++} END {print n + 0}' "$results"
}

mkdir -p "$out"
touch "$equivalent"
sources=$(find csrc shim test/unit test/property test/sim -type f | LC_ALL=C sort)
version=$(cat $sources test/tools/mutate.c test/tools/mutants.sh | sha256sum | cut -c1-16)
seed=${2:-$(cat "$out/seed" 2>/dev/null || od -An -N3 -tu4 /dev/urandom | tr -d ' ')}
if [ "$(cat "$out/version" 2>/dev/null)" != "$version $seed" ]; then
	rm -f "$out/version" "$results"
	(build) >"$out/build.log" 2>&1 || { tail -n 20 "$out/build.log"; echo "0 passed, 1 failed"; exit 1; }
	(measure) || { echo "0 passed, 1 failed"; exit 1; }
	for file in "${mutated[@]}"; do
		[ -e "$tree/$file" ] && "$out/bin/mutate" "$tree/$file" | sed "s|^|$file\t|"
	done | awk -v seed="$seed" 'BEGIN {srand(seed)} {print rand() "\t" $0}' | sort -n | cut -f2- >"$out/list"
	: >"$results"
	echo "$seed" >"$out/seed"
	echo "$version $seed" >"$out/version"
fi
export out tree
# What was reviewed since it survived no longer counts as surviving.
awk -F '\t' -v OFS='\t' '
	FILENAME == ARGV[1] { known[$1 FS $2 FS $3]; next }
	$2 == "survived" && (($3 FS $6 FS $5) in known || ($3 FS $6 FS "*") in known) { $2 = "equivalent" }
	{ print }' "$equivalent" "$results" >"$results.new" && mv "$results.new" "$results"
declare -A judged=()
while read -r number _; do
	judged[$number]=1
done <"$results"
echo "mutants: seed $seed, $(wc -l <"$out/list") possible, ${#judged[@]} judged before"

# The list is taken in order; each judgement in the background, `jobs` of them at a time.
trap 'wait; exit 130' INT TERM
number=0 running=0
while IFS=$'\t' read -r file site line change text; do
	number=$((number + 1))
	[ -n "${judged[$number]:-}" ] && continue
	[ $(($(tally noticed) + $(tally survived) + running)) -ge "$count" ] && { wait; running=0; }
	[ $(($(tally noticed) + $(tally survived))) -ge "$count" ] && break
	judge $number "$file" "$site" "$line" "$change" "$text" &
	running=$((running + 1))
	if [ $running -ge "$jobs" ]; then
		wait -n
		running=$((running - 1))
	fi
done <"$out/list"
wait

noticed=$(tally noticed) survived=$(tally survived)
awk -F '\t' '$2 == "survived" {printf "survived: %s:%s: %s    in: %s\n", $3, $4, $5, $6}' "$results" | sort
awk -F '\t' '$2 == "noticed" {n[$7]++} END {for (by in n) printf "noticed by %s: %d\n", by, n[by]}' "$results" | sort
echo "mutants: $noticed noticed, $survived survived, $(tally equivalent) equivalent, $(tally uncompiled) did not compile"
if [ $((noticed * 100)) -ge $(((noticed + survived) * percent_min)) ] && [ $((noticed + survived)) -gt 0 ]; then
	echo "1 passed, 0 failed"
else
	echo "mutants: under $percent_min %"
	echo "0 passed, 1 failed"
	exit 1
fi
