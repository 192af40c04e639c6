package jobcli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/shellword"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/trial"
)

// ResumeCommand is the shell command that resumes the job of a configuration in a
// directory, right from every working directory. more are further arguments.
//
// Relative paths of tasks are those of where the job was started. That is here, if here
// says so; else a job whose own directory was given relatively to it tells where, and of
// any other it is not known.
func ResumeCommand(resume, dir string, cfg jobdir.Config, here bool, more ...string) string {
	args := append([]string{"", dir}, more...)
	if abs, err := filepath.Abs(dir); err == nil {
		args[1] = abs
	}
	place := ""
	if hasRelativePaths(cfg) {
		if place = startedIn(args[1], cfg); here {
			place, _ = os.Getwd() // where there is none, nothing stands before the command
		}
	}
	for i, arg := range args {
		args[i] = shellword.Quote(arg)
	}
	args[0] = resume
	command := strings.Join(args, " ")
	if place != "" {
		command = "cd " + shellword.Quote(place) + " && " + command
	}
	return console.Clean(command)
}

// hasRelativePaths reports whether a configuration means something else in another
// directory.
func hasRelativePaths(cfg jobdir.Config) bool {
	relative := func(paths ...*string) bool {
		return slices.ContainsFunc(paths, func(p *string) bool { return p != nil && !filepath.IsAbs(*p) })
	}
	return slices.ContainsFunc(cfg.Tasks, func(t jobdir.TaskConfig) bool {
		if t.Kind() != jobdir.LocalTask {
			return relative(t.DownloadDir)
		}
		if !relative(t.Path) {
			return false
		}
		_, ofCube := trial.CubeOf(*t.Path)
		return !ofCube
	}) || slices.ContainsFunc(cfg.Datasets, func(d jobdir.DatasetConfig) bool {
		return relative(d.Path, d.RegistryPath, d.DownloadDir)
	}) || slices.ContainsFunc(cfg.ExtraInstructionPaths, func(p string) bool { return !filepath.IsAbs(p) })
}

// startedIn is the directory in which the job was started whose directory is dir, absolute;
// empty if that does not show.
func startedIn(dir string, cfg jobdir.Config) string {
	if filepath.IsAbs(cfg.JobsDir) {
		return ""
	}
	place, found := strings.CutSuffix(dir, string(filepath.Separator)+filepath.Clean(cfg.Dir()))
	if !found {
		return ""
	}
	return place
}

// resumeCommand resumes the job that a command runs.
func (p *Program) resumeCommand(f *Flags, cfg jobdir.Config) string {
	var more []string
	if f.Runtime != "" {
		more = append(more, "--runtime", f.Runtime)
	}
	if f.EnvFile != "" {
		file := f.EnvFile
		if abs, err := filepath.Abs(file); err == nil {
			file = abs
		}
		more = append(more, "--env-file", file)
	}
	if f.AllowEngineSocket {
		more = append(more, "--allow-engine-socket")
	}
	if f.AllowRemoteEngine {
		more = append(more, "--allow-remote-engine")
	}
	return ResumeCommand(p.Resume, cfg.Dir(), cfg, true, more...)
}

// sayHowToResume prints how a job goes on that did not come to its end; one that is for
// one trial does not.
func (p *Program) sayHowToResume(f *Flags, cfg jobdir.Config) {
	if !f.One && p.Resume != "" {
		_, _ = fmt.Fprintf(p.Stderr, "%s: to resume it: %s\n", p.Name, p.resumeCommand(f, cfg))
	}
}

// sayHowToLook prints how to see more of a job that ended: its first trial with an
// exception, or the job.
func (p *Program) sayHowToLook(f *Flags, cfg jobdir.Config, out *job.Summary) {
	if p.Show == "" || f.quiet(cfg) {
		return
	}
	what, dir := "job", cfg.Dir()
	if i := slices.IndexFunc(out.Records, func(r jobdir.Record) bool { return r.ExceptionType != "" }); i >= 0 {
		what, dir = "trial", filepath.Join(dir, out.Records[i].TrialName)
	}
	PrintHowToLook(p.Stderr, p.Name, p.Show, what, dir)
}

// PrintHowToLook prints, in the name of a program, with which commands of show to see more
// of a job or a trial.
func PrintHowToLook(w io.Writer, name, show, what, dir string) {
	dir = console.Clean(shellword.Quote(dir))
	_, _ = fmt.Fprintf(w, "%[1]s: to look further: %[2]s %[3]s show %[4]s\n%[1]s: in a browser: %[2]s view %[4]s\n", name, show, what, dir)
}
