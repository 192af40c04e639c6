package cube

// What the vectors fix and no other package needs.
var (
	RunHealthCheck = runHealthCheck
	BaseSeed       = baseSeed
)
