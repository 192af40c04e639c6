package view

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/redact"
	"github.com/proctor-run/proctor/internal/secret"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
)

// mostConfig bounds what is read of a configuration, in bytes.
const mostConfig = 16 << 20

// secretsOf are those that a page of an export must not have: those of the job that its
// address is of, or of all jobs.
func (e *exporter) secretsOf(address string) *redact.Set {
	job := ""
	if parts := strings.SplitN(address, "/", 5); len(parts) > 3 && parts[1] == "jobs" {
		name, _, _ := strings.Cut(parts[3], "?")
		if name, err := url.PathUnescape(name); err == nil {
			job = parts[2] + "/" + name
		}
	}
	if set, ok := e.secrets[job]; ok {
		return set
	}
	var list []redact.Secret
	if job != "" {
		list = e.secretsIn(job)
	} else {
		for i, d := range e.server.dirs {
			for _, name := range jobsIn(d) {
				list = append(list, e.secretsIn(place{index: i, name: name}.compare())...)
			}
		}
	}
	e.secrets[job] = redact.New(list)
	return e.secrets[job]
}

// secretsIn are those of a job, named as addresses do, of its trial where that was given
// by itself, and of this process.
func (e *exporter) secretsIn(job string) []redact.Secret {
	source := secret.Source{Environ: e.o.Environ, Lookup: e.lookup}
	list := source.OfProcess()
	at, err := e.server.jobNamed(job)
	if err != nil {
		return list
	}
	if data, err := bounded.ReadIn(at.path, scan.ConfigFile, mostConfig); err == nil {
		if cfg, _, err := jobdir.ParseConfig(data, jobdir.JSON, e.server.o.Now()); err == nil {
			list = append(list, source.OfJob(cfg)...)
		}
	}
	trial := e.server.dirs[at.index].trial
	if trial == "" {
		return list
	}
	if data, err := bounded.ReadIn(filepath.Join(at.path, trial), scan.ConfigFile, mostConfig); err == nil {
		if cfg, _, err := jobdir.ParseTrialConfig(data); err == nil {
			list = append(list, source.OfTrial(cfg, nil)...)
		}
	}
	return list
}

func (e *exporter) lookup(name string) (string, bool) {
	for _, kv := range e.o.Environ {
		if n, v, _ := strings.Cut(kv, "="); n == name {
			return v, true
		}
	}
	return "", false
}

// jobsIn are the names of the jobs of a directory.
func jobsIn(d directory) []string {
	switch {
	case d.file != "":
		return nil
	case d.only != "":
		return []string{d.only}
	}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil // its page says so
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && isName(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}
