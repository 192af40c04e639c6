package harbor

// What only tests outside the package need by name.

const (
	Public                  = public
	TransportStreamableHTTP = transportStreamableHTTP
	Windows                 = windows
)

var (
	ImageName        = imageName
	MissingVariables = missingVariables
	NormalizeHosts   = normalizeHosts
	ResolveTemplate  = resolveTemplate
)
