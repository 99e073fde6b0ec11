# SPDX-License-Identifier: Apache-2.0
# What hwloc would export of a machine of ours, format v2: awk -v folder=machines -f hwloc.awk NAME.machine >NAME.xml
# NUMA node → host bridge → PCIe switch (a port above, one port below for each device) → GPU or NIC.
function read_file(path,    line) {
	while ((getline line <path) > 0)
		take(line)
	close(path)
}
function take(line,    word, n) {
	sub(/#.*/, "", line)
	n = split(line, word, " ")
	if (n == 2 && word[1] == "include")
		read_file(folder "/" word[2])
	else if (n == 9 && (word[1] == "gpu" || word[1] == "nic"))
		add(word)
}
function add(word,    key) {
	# A GPU that is written again is moved, not doubled.
	key = word[1] " " word[2]
	if (!(key in at)) {
		at[key] = devices++
	}
	key = at[key]
	kind[key] = word[1]; name[key] = word[2]; bus[key] = word[3]
	numa[key] = word[5]; root[key] = word[7]; plx[key] = word[9]
	if (numa[key] + 1 > numas) numas = numa[key] + 1
}
function tag(text) { printf "%s\n", text }
function sets(n,    set) {
	set = sprintf("0x%08x", 2 ^ n)
	return "cpuset=\"" set "\" complete_cpuset=\"" set "\" nodeset=\"" set "\" complete_nodeset=\"" set "\" gp_index=\"" ++gp "\""
}
function bridge(attributes) {
	tag("<object type=\"Bridge\" gp_index=\"" ++gp "\" " attributes ">")
}
# Ports get addresses that no device has: their numbers are the bus of what is below, on device 31 and 30.
function port(below, device, depth) {
	bridge("bridge_type=\"1-1\" depth=\"" depth "\" bridge_pci=\"" substr(below, 1, 4) ":[" substr(below, 6, 2) "-" substr(below, 6, 2) \
		"]\" pci_busid=\"" substr(below, 1, 8) device ".0\" pci_type=\"0604 [10b5:8747] [0000:0000] ca\" pci_link_speed=\"15.75\"")
}
function leaf(d,    os) {
	tag("<object type=\"PCIDev\" gp_index=\"" ++gp "\" pci_busid=\"" bus[d] "\" pci_type=\"" \
		(kind[d] == "gpu" ? "0302 [10de:20b0] [10de:134f] a1" : "0207 [15b3:101b] [15b3:0007] 00") "\" pci_link_speed=\"15.75\">")
	if (kind[d] == "nic")
		tag("<object type=\"OSDev\" gp_index=\"" ++gp "\" name=\"" name[d] "\" osdev_type=\"3\"/>")
	tag("</object>")
}
function host_bridge(r,    d, first, open) {
	first = -1
	for (d = 0; d < devices; d++)
		if (root[d] == r && first < 0) first = d
	bridge("bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"" substr(bus[first], 1, 4) ":[00-ff]\"")
	for (d = 0; d < devices; d++) {
		if (root[d] != r || done[d])
			continue
		if (plx[d] == "-") {
			port(bus[d], "1f", 1); leaf(d); tag("</object>")
			done[d] = 1
			continue
		}
		port(bus[d], "1f", 1)
		for (open = d; open < devices; open++) {
			if (root[open] != r || plx[open] != plx[d])
				continue
			port(bus[open], "1e", 2); leaf(open); tag("</object>")
			done[open] = 1
		}
		tag("</object>")
	}
	tag("</object>")
}
{ take($0) }
END {
	all = sprintf("0x%08x", 2 ^ numas - 1)
	tag("<?xml version=\"1.0\" encoding=\"UTF-8\"?>")
	tag("<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">")
	tag("<topology version=\"2.0\">")
	tag("<object type=\"Machine\" os_index=\"0\" cpuset=\"" all "\" complete_cpuset=\"" all "\" allowed_cpuset=\"" all \
		"\" nodeset=\"" all "\" complete_nodeset=\"" all "\" allowed_nodeset=\"" all "\" gp_index=\"" ++gp "\">")
	for (n = 0; n < numas; n++) {
		tag("<object type=\"Package\" os_index=\"" n "\" " sets(n) ">")
		tag("<object type=\"NUMANode\" os_index=\"" n "\" " sets(n) " local_memory=\"137438953472\"/>")
		tag("<object type=\"Core\" os_index=\"" n "\" " sets(n) ">")
		tag("<object type=\"PU\" os_index=\"" n "\" " sets(n) "/>")
		tag("</object>")
		for (d = 0; d < devices; d++)
			if (numa[d] == n && !done[d]) host_bridge(root[d])
		tag("</object>")
	}
	tag("</object>")
	tag("</topology>")
}
