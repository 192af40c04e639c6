package image

import (
	"net/http"
	"time"
)

// Retry is one row of the table that says which failures of a registry are
// tried again. The first row that matches decides.
type Retry struct {
	// Name of the failure, for the log.
	Name string
	// MinStatus and MaxStatus bound the HTTP statuses of the row.
	MinStatus, MaxStatus int
	// Connection: the row is for connections that break or cannot be made.
	Connection bool
	// Attempts in all, the first included.
	Attempts int
	// Delay before the second attempt; it doubles up to MaxDelay.
	Delay, MaxDelay time.Duration
	// RetryAfter: the registry's Retry-After header, up to MaxDelay, replaces Delay.
	RetryAfter bool
}

// DefaultRetries returns the table that is used when Options has none.
func DefaultRetries() []Retry {
	return []Retry{
		{Name: "rate limit", MinStatus: http.StatusTooManyRequests, MaxStatus: http.StatusTooManyRequests,
			Attempts: 6, Delay: 2 * time.Second, MaxDelay: time.Minute, RetryAfter: true},
		{Name: "request timeout", MinStatus: http.StatusRequestTimeout, MaxStatus: http.StatusRequestTimeout,
			Attempts: 4, Delay: time.Second, MaxDelay: 10 * time.Second},
		{Name: "server error", MinStatus: 500, MaxStatus: 599,
			Attempts: 4, Delay: time.Second, MaxDelay: 10 * time.Second, RetryAfter: true},
		{Name: "connection", Connection: true,
			Attempts: 5, Delay: 500 * time.Millisecond, MaxDelay: 8 * time.Second},
	}
}
