// Package jobdir holds what job and trial directories hold, and runs nothing.
//
// [Config] says what a job runs and [Result] how it ended; [TrialConfig] and
// [TrialResult] say the same of one trial. They are plain values that read and
// write Harbor's files byte for byte: begin with [ParseConfig] and
// [Config.AppendJSON], [ParseResult] and [Result.AppendJSON],
// [ParseTrialConfig], [ParseTrialResult], [ParseLock] and [Lock.AppendJSON].
// Readers accept what Harbor accepts, older spellings included, and report
// every problem of a document at once, each with its place.
//
// Proctor's own files stand beside them: the notes of a trial ([ReadNotes]) and
// the guard that keeps a second process out of a directory ([Acquire]). Package
// journal has the record of what was done, package scan reads whole directories
// as one small [Record] per trial.
//
// Values of env maps that look like credentials are redacted on every write;
// a value that was read back is therefore the redacted one. Nothing here reads
// the environment of the process: where a rule needs it, a lookup function is
// passed in.
package jobdir
