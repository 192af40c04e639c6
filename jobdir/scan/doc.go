// Package scan reads job directories of any size.
//
// [Dir] reads all trials of a directory in parallel and keeps one small record
// of each; [ReadRecord] reads one. Results of the common form are read without
// building documents, all others by jobdir.ParseTrialResult, and both give the
// same.
package scan
