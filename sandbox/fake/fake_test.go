package fake_test

import (
	"os"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/sandbox/sandboxtest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	for name, caps := range map[string]*sandbox.Capabilities{"all": nil, "none": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sandboxtest.Run(t, sandboxtest.Config{
				New: func(t testing.TB) sandbox.Backend {
					return fake.New(fake.Config{Dir: t.TempDir(), Capabilities: caps, Rules: []fake.Rule{
						fake.On(sandboxtest.ScriptHang, fake.Print("ready\n"), fake.Hang()),
						fake.On(sandboxtest.ScriptBoth, fake.Print("out\n"), fake.PrintErr("err\n")),
						fake.On(sandboxtest.ScriptExit3, fake.Exit(3)),
						fake.On(sandboxtest.ScriptMuch, fake.Flood(sandboxtest.MuchBytes)),
						fake.On(sandboxtest.ScriptCat, fake.Cat()),
					}})
				},
				Simulated: true,
				OneUser:   os.Geteuid() != 0,
			})
		})
	}
}
