// Package cgroup limits what sandboxes use with the control groups of the kernel,
// version 1 and 2.
package cgroup
