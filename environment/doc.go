// Package environment runs the environment of a Harbor task: the sandbox that
// the agent works in and the verifier judges, from its start to its removal.
//
//	e := environment.New(cfg)
//	defer e.Close(ctx)
//	err := e.Start(ctx)       // within the build time limit
//	err = e.WaitHealthy(ctx)
//	err = e.Equip(ctx)
//	…                         // the agent works in e.Sandbox(), or through e.Exec
//	res, err := e.Verify(ctx, nil)
//
// Whoever runs a task has exactly one of these: a trial, or a cube that offers
// Harbor tasks. A cube that a trial runs is handed the trial's.
//
// Sections named in comments are those of the Harbor task format.
package environment
