// Package cube is CUBE's task layer: what a benchmark is made of, and how agents
// meet it.
//
// # To write a benchmark
//
// A cube is a handful of small Go types. Copy package
// [github.com/proctor-run/proctor/cube/cubes/arithmetic]; in order of what an
// agent sees:
//
//   - a [Problem]: a struct that embeds [TaskBase] and has Reset, which states
//     the objective, and Evaluate, which scores. That is all that must be
//     written of behaviour. Optional hooks are small interfaces that it may also
//     implement: [Finisher], [ActionFilter], [ObsPostprocessor],
//     [PrivilegedInformer], [StatusReporter], [ToolBuilder], [Closer].
//   - a tool: an [ActionTool] made with [NewActionTool] from typed functions
//     ([Func]), and a [ToolConfig] that makes it.
//   - metadata: a struct that embeds [TaskMetadata].
//   - a task config: a struct that embeds [TaskConfigBase]; its Make usually is
//     one call of Build.
//   - a benchmark config: a struct that embeds [BenchmarkConfigBase]; its
//     Definition lists the tasks. It may put options of its own into the task
//     configs ([TaskConfigurer]), install data ([Installer]) and be one of
//     several benchmarks of its type ([Parametrised]).
//
// Types that cross process boundaries are [Typed]. Register them with
// [Registry.Add], and run package cubetest on the whole.
//
// # To run one
//
//	reg := cube.NewRegistry(cube.Options{CacheRoot: dir, Sandbox: backend})
//	err := arithmetic.Register(reg)
//	bench, err := reg.Make(ctx, &arithmetic.Config{}, nil)
//	defer bench.Close(ctx)
//	for cfg, err := range bench.TaskConfigs() {
//		task, err := bench.Spawn(ctx, cfg)
//		obs, info, err := task.Reset(ctx)
//		out, err := task.Step(ctx, actions...) // until out.Done
//		err = task.Close(ctx)
//	}
//
// A [TaskConfig] is self-contained: written with [Marshal], read with [Load] in
// another process that has the same types registered, [Registry.MakeTask] makes
// its task there.
//
// # What holds
//
//   - Everything that is written is read back as the type it was, in every slot,
//     by this package and by the Python implementation.
//   - [Task.Step] is the same for all problems.
//   - A [Task] may be used from several goroutines: its hooks run one at a time,
//     and none runs for a context that has ended, or after Close.
//   - A task that could not be set up has left nothing running. [Task.Close]
//     closes the tool and stops the container, whatever else fails. A panic in a
//     hook becomes an error and closes the task at once.
//   - A [RuntimeContext] does not change once the benchmark is set up.
//   - Nothing here reads the environment, keeps global state or prints.
//
// The names and the behaviour are those of the CUBE standard's task layer of May
// 2026; sections named in comments are those of its description, "CUBE".
package cube
