package main

import (
	"github.com/proctor-run/proctor/internal/console"
)

// clean makes text from outside safe for a terminal and a single line.
func clean(s string) string { return console.Clean(s) }

func count(n int, what string) string { return console.Count(n, what) }
