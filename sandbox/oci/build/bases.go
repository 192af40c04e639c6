package build

import (
	"runtime"

	"github.com/proctor-run/proctor/sandbox/buildcontext"
)

// Bases lists the images that building a context pulls, without building
// anything. Without a Dockerfile the error is fs.ErrNotExist.
func Bases(contextDir string) ([]string, error) {
	text, err := buildcontext.ReadDockerfile(contextDir)
	if err != nil {
		return nil, err
	}
	p, err := parse(text, runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, ref := range p.images() {
		names = append(names, ref.name)
	}
	return names, nil
}
