package cgroup

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/sandbox/oci/internal/hostfile"
)

// unlimited is at least what version 1 says where memory has no limit, in bytes.
const unlimited = 1 << 62

// Bounds are the limits of the groups that the place is in, as far as they are to be
// seen: the processors and the bytes of memory that everything in it may use together.
// A number that is 0 is not bounded. Where there is no place, those of the groups that
// this process is in count.
func (p *Place) Bounds() (cpus float64, memory int64) {
	root := p.root()
	switch {
	case p != nil:
		root = strings.TrimSuffix(root, p.path)
		return bounds(root, func(string) string { return p.path })
	case unified(root):
		return bounds(root, func(string) string { return ownPath() })
	}
	homes := homeGroups(root)
	return bounds(root, func(controller string) string {
		return strings.TrimPrefix(homes[controller], filepath.Join(root, controller))
	})
}

// bounds reads the limits of a group and of those above it, where group says which one it
// is by controller.
func bounds(root string, group func(controller string) string) (cpus float64, memory int64) {
	for dir := range upwards(root, Processors, group) {
		if n := processorsOf(dir); n > 0 && (cpus == 0 || n < cpus) {
			cpus = n
		}
	}
	for dir := range upwards(root, Memory, group) {
		for _, file := range []string{"memory.max", "memory.limit_in_bytes"} {
			if n := number(hostfile.Small(filepath.Join(dir, file))); n > 0 && n < unlimited && (memory == 0 || n < memory) {
				memory = n
			}
		}
	}
	return cpus, memory
}

// upwards are the directories of a group and of those above it.
func upwards(root, controller string, group func(string) string) func(yield func(string) bool) {
	base := root
	if !unified(root) {
		base = filepath.Join(root, controller)
	}
	return func(yield func(string) bool) {
		for path := filepath.Join("/", group(controller)); ; path = filepath.Dir(path) {
			if !yield(filepath.Join(base, path)) || path == "/" {
				return
			}
		}
	}
}

// processorsOf is how many processors a group may use, 0 where it is not bounded.
func processorsOf(dir string) float64 {
	quota, period := hostfile.Small(filepath.Join(dir, "cpu.cfs_quota_us")), hostfile.Small(filepath.Join(dir, "cpu.cfs_period_us"))
	if both := strings.Fields(hostfile.Small(filepath.Join(dir, "cpu.max"))); len(both) == 2 {
		quota, period = both[0], both[1]
	}
	q, p := number(quota), number(period)
	if q <= 0 || p <= 0 {
		return 0
	}
	return float64(q) / float64(p)
}

// number reads what a file of a group says; -1 and the word max are no bound.
func number(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}
