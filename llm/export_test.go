package llm

// HadBodies has a recorder begin as one that wrote down bodies of n bytes: compressing as
// much as a recording may have takes long.
func (r *Recorder) HadBodies(n int64) *Recorder {
	r.bodies = n
	return r
}
