package llm

import (
	"net/http"
	"time"
)

// Endpoint is a model at a server: everything that a provider needs to make calls. It
// reads nothing else, in particular no variables of the process.
type Endpoint struct {
	// Name is the name as it was configured; errors and [Info] have it.
	Name string
	// Model is the name that is sent.
	Model string
	API   API
	// Base is the server's address. That of "chat" and "responses" has the version at
	// its end, the others may leave it away. Empty is the provider's own.
	Base string
	// Key may be empty: servers of one's own often want none.
	Key string
	// Bearer sends the key as a bearer token also where the protocol has a header of its
	// own for keys.
	Bearer bool
	// HTTP makes the requests; nil for [http.DefaultClient].
	HTTP *http.Client
	// Now is the clock that a date in Retry-After is compared to; where it is nil, such
	// dates are ignored.
	Now func() time.Time
	// Info is what [Model.Info] returns, with Name.
	Info Info
}

// Dialer makes the model of an endpoint. It makes no call.
type Dialer func(Endpoint) (Model, error)
