# SPDX-License-Identifier: Apache-2.0
# A machine's description with the lines of the files that it includes, so that it can be put elsewhere.
# Usage: awk -v folder=FOLDER -f flat.awk FILE
function show(path,    line) {
	while ((getline line < path) > 0)
		if (line ~ /^include /)
			show(folder "/" substr(line, 9))
		else
			print line
	close(path)
}
BEGIN { show(ARGV[1]) }
