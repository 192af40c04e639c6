package wire

import "io"

// UsageFilter passes a stream on without what the agent did not ask for.
type UsageFilter struct{ to io.Writer }

// NewUsageFilter passes a chat stream on to w.
func NewUsageFilter(w io.Writer) *UsageFilter { return &UsageFilter{to: w} }

// Write takes the next bytes of the stream.
func (f *UsageFilter) Write(p []byte) (int, error) { return f.to.Write(p) }

// Flush passes on what is left at the end of the stream.
func (f *UsageFilter) Flush() error { return nil }
