package main

// harborCommands are commands of Harbor that proctor has not, by what follows the program's
// name, each with what there is instead (Harbor job format, section 7.3).
// docs/commands.md lists them.
var harborCommands = map[string]string{
	"check":          "'proctor task check DIR' runs a task to find out whether its rewards can be trusted",
	"analyze":        "'proctor job summarize JOBDIR' counts what a job's files tell; no model is asked",
	"task start-env": "proctor opens no shell in a task's environment; 'proctor run -e docker --no-delete' keeps the sandbox, and says how to get in",
	"cube resume":    "'proctor job resume JOBDIR' resumes jobs of cubes, too",
	"init":           "'proctor task init NAME' makes a task, 'proctor cube init NAME' a cube",
	"cache":          "'proctor gc' removes what killed runs left and images that nobody used for a week",

	"download":         fetchedWhenRun,
	"dataset download": fetchedWhenRun,
	"task download":    fetchedWhenRun,

	"dataset init":       noPackages,
	"add":                noPackages,
	"remove":             noPackages,
	"sync":               noPackages,
	"task update":        noPackages,
	"publish":            noHub,
	"upload":             noHub,
	"auth":               noHub,
	"leaderboard":        noHub,
	"job share":          noHub,
	"job upload":         noHub,
	"job download":       noHub,
	"trial download":     noHub,
	"task visibility":    noHub,
	"dataset visibility": noHub,

	"plugins":       "proctor loads no Python code; programs of your own use its packages, see docs/library.md",
	"adapter":       "'proctor task migrate' converts Terminal-Bench tasks; other benchmarks are cubes: 'proctor cube init NAME'",
	"task annotate": "proctor asks no model to describe tasks; write the description in task.toml",
	"sweeps":        "start a job per setting with 'proctor run --job-name', then 'proctor compare' them",
	"admin":         "'proctor image export' writes images to a directory; proctor uploads none",
}

const (
	noHub          = "proctor has no hosted hub: job directories are plain files; 'proctor verify --audit FILE' pins one that is handed on"
	noPackages     = "proctor does not maintain package manifests; datasets are directories of tasks, or entries of a registry file"
	fetchedWhenRun = "'proctor run -d NAME' fetches a dataset's tasks when it runs; 'proctor dataset list' lists the datasets"
)
