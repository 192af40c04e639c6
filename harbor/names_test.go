package harbor

// What only tests outside the package need by name.

const (
	TransportStreamableHTTP = transportStreamableHTTP
)

var (
	ImageName        = imageName
	MissingVariables = missingVariables
	NormalizeHosts   = normalizeHosts
	ResolveTemplate  = resolveTemplate
)
