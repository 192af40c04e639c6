package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/internal/need"
)

// TestComposeTaskLeavesNothing runs the example of a compose task several times
// at once, and looks for what the engine still has of it.
func TestComposeTaskLeavesNothing(t *testing.T) {
	t.Parallel()
	host := need.Image(t, exampleImage)
	p := newPlace(t)
	out, err := p.command("run", "-p", repositoryPath(t, "examples/compose"), "-a", "oracle", "-e", "docker",
		"-k", "3", "-n", "3", "--job-name", "j", "--fail-under", "1").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	trials, err := filepath.Glob(filepath.Join(p.dir, "jobs", "j", "key-value-store__*"))
	if err != nil || len(trials) != 3 {
		t.Fatalf("trials %q, %v", trials, err)
	}
	c, err := client.New(client.WithHost(host))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for _, trial := range trials {
		name := filepath.Base(trial)
		of := make(client.Filters).Add("label", "proctor.trial="+name)
		containers, err1 := c.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: of})
		networks, err2 := c.NetworkList(t.Context(), client.NetworkListOptions{Filters: of})
		volumes, err3 := c.VolumeList(t.Context(), client.VolumeListOptions{Filters: of})
		images, err4 := c.ImageList(t.Context(), client.ImageListOptions{})
		for _, err := range []error{err1, err2, err3, err4} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if n := len(containers.Items) + len(networks.Items) + len(volumes.Items); n > 0 {
			t.Errorf("%s: left are %+v, %+v, %+v", name, containers.Items, networks.Items, volumes.Items)
		}
		for _, image := range images.Items {
			if tags := strings.Join(image.RepoTags, " "); strings.Contains(tags, strings.ToLower(name)) {
				t.Errorf("%s: an image is called %s", name, tags)
			}
		}
		text, err := os.ReadFile(filepath.Join(trial, "result.json"))
		var result struct {
			EnvironmentSetup struct {
				StartedAt  time.Time `json:"started_at"`
				FinishedAt time.Time `json:"finished_at"`
			} `json:"environment_setup"`
		}
		if err == nil {
			err = json.Unmarshal(text, &result)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: the project was up after %v", name, result.EnvironmentSetup.FinishedAt.Sub(result.EnvironmentSetup.StartedAt).Round(time.Millisecond))
	}
}
