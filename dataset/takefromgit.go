package dataset

import (
	"os"

	"github.com/proctor-run/proctor/jobdir"
)

// TakeFromGit makes a path that is a dataset of the configuration a task of a
// git repository, at a commit unless that is nil, and reports whether it did:
// not where the path is on this machine, nor where the configuration has no
// dataset.
//
// Harbor drops the repository unless there is such a task on this machine, too,
// and then finds no tasks.
func TakeFromGit(cfg *jobdir.Config, path, url string, commit *string) bool {
	if len(cfg.Datasets) == 0 {
		return false
	}
	if _, err := os.Lstat(path); err == nil {
		return false
	}
	cfg.Datasets = nil
	cfg.Tasks = []jobdir.TaskConfig{{Path: &path, GitURL: &url, GitCommitID: commit}}
	return true
}
