package bench

import "slices"

// Operation is one thing that is measured.
type Operation struct {
	Name string `json:"name"`
	// What is measured, in words.
	What string `json:"what"`
	// Unit of the samples: "s" for seconds, of which fewer are better, else a
	// rate, of which more are better.
	Unit string `json:"unit"`
	// Against is the operation of the base that the ratio compares with; "host" is
	// the same without a sandbox.
	Against string `json:"against"`
}

// Names of the operations.
const (
	opCreate      = "create"
	opFirst       = "first-command"
	opReady       = "ready"
	opCommand     = "command"
	opParallel    = "parallel"
	opUpload1     = "upload-1"
	opUpload100   = "upload-100"
	opDownload1   = "download-1"
	opDownload100 = "download-100"
	opReset       = "reset"
	opResetAgain  = "reset-again"
	opFork        = "fork"
	opPool        = "pool"
	opDestroy     = "destroy"
	opLife        = "life"
	opIdle        = "idle"
	opTrials      = "trials"
	opNetwork     = "network"
	unitSeconds   = "s"
	unitPerSecond = "1/s"
	unitMegabytes = "MB/s"
	unitPerGiB    = "1/GiB"
	parallel      = 16 // commands at a time
	perLane       = 4  // commands that each of them runs
	commandsATime = 8  // samples of a command in each round
	idleSandboxes = 4
	networkMiB    = 64
	mebibyte      = 1 << 20
	gibibyte      = 1 << 30
	largeFileMiB  = 100
	trueCommand   = "true"
	// Where hardened sandboxes can be written too, and what Reset takes back.
	benchDirectory = "/root/proctor-bench"
	benchFile      = "/root/proctor-bench-file"
	// againstHost compares with this machine itself.
	againstHost = "host"
)

// operations in the order of the table.
var operations = []Operation{
	{opCreate, "Create, until it returns", unitSeconds, opCreate},
	{opFirst, "the first command (true)", unitSeconds, opFirst},
	{opReady, "Create and the first command", unitSeconds, opReady},
	{opCommand, "a command (true)", unitSeconds, opCommand},
	{opParallel, "commands per second, 16 at a time", unitPerSecond, opParallel},
	{opUpload1, "upload of a file of 1 MiB", unitSeconds, opUpload1},
	{opUpload100, "upload of a file of 100 MiB", unitSeconds, opUpload100},
	{opDownload1, "download of a file of 1 MiB", unitSeconds, opDownload1},
	{opDownload100, "download of a file of 100 MiB", unitSeconds, opDownload100},
	{opReset, "Reset after a command that wrote, until it returns", unitSeconds, opCreate},
	{opResetAgain, "the same again, a second later", unitSeconds, opCreate},
	{opFork, "Fork of a snapshot, until it returns", unitSeconds, opCreate},
	{opPool, "a sandbox from a pool that has one ready", unitSeconds, opCreate},
	{opDestroy, "Destroy", unitSeconds, opDestroy},
	{opLife, "Create, one command, Destroy", unitSeconds, opLife},
	{opIdle, "idle sandboxes per GiB of memory", unitPerGiB, opIdle},
	{opTrials, "trials of hello-world per second", unitPerSecond, opTrials},
	{opNetwork, "64 MiB from a server in a network namespace of its own", unitMegabytes, againstHost},
}

// Operations lists what can be measured, in the order of reports.
func Operations() []Operation { return slices.Clone(operations) }
