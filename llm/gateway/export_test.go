package gateway

// MaxCalls and MaxHeld bound what is under way at once.
const (
	MaxCalls = maxCalls
	MaxHeld  = maxHeld
)

// Hold counts memory as in use, or no longer.
func (g *Gateway) Hold(n int64) bool { return g.hold(n) }
