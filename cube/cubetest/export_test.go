package cubetest

// What the vectors fix and no other package needs.
var (
	AggregateProfiling = aggregateProfiling
	Percentile         = percentile
	ObservationDiff    = observationDiff
)
