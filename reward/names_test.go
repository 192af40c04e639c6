package reward

// What only tests outside the package need by name.

const (
	MaxFileSize  = maxFileSize
	MaxProblems  = maxProblems
	NotAllowed   = notAllowed
	ScriptFailed = scriptFailed
	StrategyMean = strategyMean
	Sum          = sum
	TooLarge     = tooLarge
	Unreadable   = unreadable
)

var (
	KValues = kValues
)
