package infra_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/infra"
)

// TestConstructorsGiveTheDefaults: what a constructor makes is what a document with
// nothing but the constructor's arguments is read as.
func TestConstructorsGiveTheDefaults(t *testing.T) {
	t.Parallel()
	r := cube.NewRegistry(cube.Options{})
	for _, c := range []struct {
		made     cube.Typed
		document string
	}{
		{infra.NewVMResourceConfig("desktop"), `{"name": "desktop"%s}`},
		{infra.NewDockerServiceConfig("shop", "docker compose up -d"), `{"name": "shop", "launch_script": "docker compose up -d"%s}`},
		{infra.NewDockerImageConfig("db", "postgres:17"), `{"name": "db", "image": "postgres:17"%s}`},
		{infra.NewContainerConfig("debian:12"), `{"image": "debian:12"%s}`},
		{infra.NewLocalContainerBackend(nil), `{"backend_config": {}%s}`},
		{infra.NewLocal(infra.Host{}), `{"image_name_suffix": ""%s}`},
		{infra.NewModalContainerBackend(), `{"backend_config": {}%s}`},
		{infra.NewDaytonaContainerBackend(), `{"backend_config": {}%s}`},
		{infra.NewToolkitContainerBackend(), `{"backend_config": {}%s}`},
	} {
		name := c.made.TypeName()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, err := r.LoadAs(name, fmt.Appendf(nil, c.document, `, "_type": "`+name+`"`))
			if err != nil {
				t.Fatal(err)
			}
			want, err := cube.Marshal(read)
			if err != nil {
				t.Fatal(err)
			}
			got, err := cube.Marshal(c.made)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("(-document +constructor):\n%s", diff)
			}
		})
	}
}
