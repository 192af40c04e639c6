//go:build !race

package view

// largeJob is how many trials it has.
const largeJob = 10_000
