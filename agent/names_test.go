package agent

// What only tests outside the package need by name.

var (
	AppendMCPConfig = appendMCPConfig
)
