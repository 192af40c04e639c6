//go:build race

package view

// largeJob is how many trials it has: files are slow to make and to read with the race
// detector, which finds nothing in more of them.
const largeJob = 1000
