package score

// What only tests outside the package need by name.

const (
	MethodBinomial = methodBinomial
	MethodStudent  = methodStudent
)

var (
	EstimateMean  = estimateMean
	NewAggregator = newAggregator
)
