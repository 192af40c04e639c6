package ownrunner

// What only tests outside the package need by name.

type (
	Container = container
	Cost      = cost
	Machine   = machine
	Trial     = trial
)

var (
	AgentEnv        = agentEnv
	BridgeFailed    = bridgeFailed
	Concurrency     = concurrency
	EngineAddress   = engineAddress
	ExposedSockets  = exposedSockets
	FailureMarker   = failureMarker
	ImageTag        = imageTag
	IsForbiddenName = isForbiddenName
	IsSecretName    = isSecretName
	NetworkFailed   = networkFailed
	Redact          = redact
	Summary         = summary
	TrialName       = trialName
)
