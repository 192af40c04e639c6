package taskcheck

// What only tests outside the package need by name.

type (
	Outcome = outcome
)

const (
	EffectChanged = effectChanged
	EffectForged  = effectForged
	EffectNone    = effectNone
	KindChannel   = kindChannel
	KindNop       = kindNop
	KindOffline   = kindOffline
	KindOracle    = kindOracle
	ReachNone     = reachNone
	ReachTrial    = reachTrial
	ReachVerifier = reachVerifier
	Skip          = skip
)

var (
	Channel        = channel
	Gather         = gather
	JudgeChannel   = judgeChannel
	JudgeNetwork   = judgeNetwork
	JudgeReference = judgeReference
	Solved         = solved
	TakeNetwork    = takeNetwork
)
