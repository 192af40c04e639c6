package agent

import (
	"context"

	"github.com/proctor-run/proctor/llm"
)

// Installation is how an agent's program comes into a sandbox: into one directory, which
// can be kept and shown to other sandboxes of the same image.
type Installation struct {
	// Agent is the entry's name. Version is the one that is installed.
	Agent, Version string
	// Digest tells apart what would install other files, image and machine aside.
	Digest string
	// Prefix is the directory in the sandbox, absolute.
	Prefix string
	// Hosts are what Install reaches, for an allow list.
	Hosts []string
	// Find looks for the program in a sandbox: found tells whether it is there without
	// Prefix, in a version that will do.
	Find func(ctx context.Context, env Env) (version string, found bool, err error)
	// Install fills Prefix, and returns the version that is there then.
	Install func(ctx context.Context, env Env) (version string, err error)
	// Works returns the version of what is in Prefix, and an error where it does not run in
	// this sandbox.
	Works func(ctx context.Context, env Env) (version string, err error)
}

// Installed is an agent's program that was installed before.
type Installed struct {
	// Prefix is where it is in the sandbox; empty where the image has it by itself.
	Prefix, Version string
	// Trusted says that it was installed in, or has been seen to run in, this image.
	Trusted bool
	// Used is set by the agent's Setup where this is what it runs from then on.
	Used bool
}

// ModelAccess is how the commands of an agent reach the model of its configuration.
type ModelAccess struct {
	// APIs are the protocols that are spoken there.
	APIs []llm.API
	// Addresses are those of the server in one of them: url with the protocol's version at
	// its end, root without.
	Addresses func(llm.API) (url, root string)
	// Key is what the server wants; through the model gateway one that is worth nothing
	// elsewhere.
	Key string
	// Info is what is known of the model.
	Info llm.Info
}
