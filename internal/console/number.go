package console

import (
	"fmt"
	"math"
)

// Decimals is a number with three places, "-" for none.
func Decimals(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf("%.3f", x)
}
