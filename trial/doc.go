// Package trial describes and runs one trial: one agent, one task, one
// attempt.
//
// [Config] says what to run and [Result] what came of it. Both are plain values
// that read and write Harbor's files byte for byte: [ParseConfig] and
// [Config.AppendJSON] for a trial's config.json, [ParseResult] and
// [Result.AppendJSON] for its result.json. Readers accept what Harbor accepts,
// older spellings included, and report every problem of a document at once,
// each with its place.
//
// Values of env maps that look like credentials are redacted on every write;
// a value that was read back is therefore the redacted one. Nothing here reads
// the environment of the process: where a rule needs it, a lookup function is
// passed in.
package trial
