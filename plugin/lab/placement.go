// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Annotations that a Binding of ours carries (reference 3.6).
const (
	rankAnnotation      = "topology.scheduler/rank"
	domainAnnotation    = "topology.scheduler/domain"
	allocatedAnnotation = "gpu.scheduling/allocated"
)

// placement is where one workload went, for people.
type placement struct {
	title string
	lines []string
	gpus  int
}

// placementOf describes bound pods in the order of their ranks, a line for each stretch of ranks in one domain. known are
// indices of GPUs that have ids of their own.
func placementOf(pods []v1.Pod, known map[string]int) placement {
	pods = slices.Clone(pods)
	slices.SortFunc(pods, func(a, b v1.Pod) int {
		return cmp.Or(cmp.Compare(rankOf(&a), rankOf(&b)), cmp.Compare(a.Name, b.Name))
	})
	nodes, domains := map[string]bool{}, map[string]bool{}
	var out placement
	var stretches []stretch
	for i := range pods {
		pod := &pods[i]
		domain := pod.Annotations[domainAnnotation]
		nodes[pod.Spec.NodeName] = true
		if domain != "" {
			domains[domain] = true
		}
		out.gpus += gpusOf(pod)
		if len(stretches) == 0 || stretches[len(stretches)-1].domain != domain {
			stretches = append(stretches, stretch{domain: domain, first: rankOf(pod)})
		}
		last := &stretches[len(stretches)-1]
		last.last = rankOf(pod)
		last.nodes = append(last.nodes, pod.Spec.NodeName)
	}
	out.title = fmt.Sprintf("%s, %s on %s", count(len(pods), "pod"), count(out.gpus, "GPU"), count(len(nodes), "node"))
	if len(domains) > 0 {
		out.title += " in " + count(len(domains), "leaf")
	}
	for _, s := range stretches {
		out.lines = append(out.lines, s.String())
	}
	if len(pods) == 1 {
		out.lines[0] += "  GPUs " + indices(pods[0].Annotations[allocatedAnnotation], known)
	}
	return out
}

// partOfMap is the lines of a map in which one of the words stands, each under its heading (a line that is not indented).
func partOfMap(text string, words map[string]bool) string {
	var out []string
	heading := ""
	for line := range strings.SplitSeq(text, "\n") {
		indented := strings.HasPrefix(line, " ")
		if !indented {
			heading = line
		}
		if !slices.ContainsFunc(strings.Fields(escapes.ReplaceAllString(line, "")), func(word string) bool { return words[word] }) {
			continue
		}
		if indented && heading != "" {
			out = append(out, heading)
			heading = ""
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

var (
	escapes = regexp.MustCompile("\x1b\\[[0-9;]*m") // colours
	reason  = regexp.MustCompile(`\bwhy=("(?:[^"\\]|\\.)*")`)
)

// lastReason finds the last decision about a gang or pod in the scheduler's log, which holds every decision once.
func lastReason(path, name string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	found := ""
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if !strings.Contains(line, `gang="`+name+`"`) && !strings.Contains(line, `pod="`+name+`"`) {
			continue
		}
		if match := reason.FindStringSubmatch(line); match != nil {
			if text, err := strconv.Unquote(match[1]); err == nil {
				found = text
			}
		}
	}
	return found
}

type stretch struct {
	domain      string
	first, last int
	nodes       []string
}

func (s stretch) String() string {
	ranks := ""
	switch {
	case s.first < 0:
	case s.first == s.last:
		ranks = fmt.Sprintf("rank %d", s.first)
	default:
		ranks = fmt.Sprintf("ranks %d-%d", s.first, s.last)
	}
	return fmt.Sprintf("%-18s %-12s %s", cmp.Or(s.domain, "(no domain)"), ranks, strings.Join(s.nodes, " "))
}

// rankOf is -1 for a pod without one.
func rankOf(pod *v1.Pod) int {
	rank, err := strconv.Atoi(pod.Annotations[rankAnnotation])
	if err != nil {
		return -1
	}
	return rank
}

func gpusOf(pod *v1.Pod) int {
	var gpus int64
	for i := range pod.Spec.Containers {
		limits := pod.Spec.Containers[i].Resources.Limits
		for _, name := range []v1.ResourceName{nvidiaResource, amdResource} {
			quantity := limits[name]
			gpus += quantity.Value()
		}
	}
	return int(gpus)
}

// indices shortens ids such as node-5-gpu-0,node-5-gpu-1 and those that are known to 0,1; others stay as they are.
func indices(allocated string, known map[string]int) string {
	if allocated == "" {
		return "(not recorded)"
	}
	ids := strings.Split(allocated, ",")
	for i, id := range ids {
		if index, found := known[id]; found {
			ids[i] = strconv.Itoa(index)
		} else if at := strings.LastIndex(id, "-gpu-"); at >= 0 {
			ids[i] = id[at+len("-gpu-"):]
		}
	}
	return strings.Join(ids, ",")
}

func count(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case what == "leaf":
		return fmt.Sprintf("%d leaves", n)
	default:
		return fmt.Sprintf("%d %ss", n, what)
	}
}
