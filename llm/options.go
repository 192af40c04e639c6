package llm

import (
	"github.com/proctor-run/proctor/value"
)

// Options are how a model is opened.
type Options struct {
	// Base is the address of the server; empty for the variable of the provider, or its
	// own address.
	Base string
	// API is the protocol; empty for that of the provider.
	API API
	// Env holds variables as KEY=VALUE, which count before those of the host.
	Env []string
	// Info overrides what is known of the model's limits and prices; nil for nothing.
	Info *value.Object
}

// Opener opens models: a [Client], or a test's.
type Opener interface {
	// Open finds the model of a name, "provider/model". It makes no call. The error
	// tells the person who wrote the name what is wrong with it, or what is missing.
	Open(name string, o Options) (Model, error)
}

// OpenerFunc is an [Opener] made of a function.
type OpenerFunc func(name string, o Options) (Model, error)

// Open calls f.
func (f OpenerFunc) Open(name string, o Options) (Model, error) { return f(name, o) }
