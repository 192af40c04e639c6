package gateway

import "time"

// MaxCalls and MaxHeld bound what is under way at once.
const (
	MaxCalls = maxCalls
	MaxHeld  = maxHeld
)

// Bound bounds an answer, in bytes, how long it is read on when its caller has gone, and how
// long a caller may take for a piece of it; 0 for what else is the bound.
func (g *Gateway) Bound(longest int, patience, slowest time.Duration) {
	g.longest, g.patience, g.slow = longest, patience, slowest
}

// Hold counts memory as in use, or no longer.
func (g *Gateway) Hold(n int64) bool { return g.hold(n) }
