package harbor_test

import (
	"encoding/json"
	"path"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

func TestNameVectors(t *testing.T) {
	t.Parallel()
	var file struct {
		Image []struct {
			Name, Image, Project string
		}
		Session []struct {
			Trial, Key string
			SessionID  string `json:"session_id"`
			Len        int
		}
		QuotePOSIX   []quoteCase `json:"quote_posix"`
		QuoteWindows []quoteCase `json:"quote_windows"`
		Command      []struct {
			Script     string
			Stdout     string
			OS         harbor.OS
			Command    string
			NeedsChmod bool `json:"needs_chmod"`
		}
	}
	vector(t, "tasks/names-and-commands.json", &file)
	for _, tt := range file.Image {
		if got := harbor.ImageName(tt.Name); got != tt.Image {
			t.Errorf("image of %q: %q, want %q", tt.Name, got, tt.Image)
		}
		if got := harbor.ProjectName(tt.Name); got != tt.Project {
			t.Errorf("project of %q: %q, want %q", tt.Name, got, tt.Project)
		}
	}
	for _, tt := range file.Session {
		if got := harbor.VerifierSessionID(tt.Trial, tt.Key); got != tt.SessionID || utf8.RuneCountInString(got) != tt.Len {
			t.Errorf("session of %q, %q: %q, want %q", tt.Trial, tt.Key, got, tt.SessionID)
		}
	}
	checkQuotes(t, harbor.Linux, file.QuotePOSIX)
	checkQuotes(t, harbor.Windows, file.QuoteWindows)
	for _, tt := range file.Command {
		got, err := tt.OS.ScriptCommand(tt.Script, tt.Stdout)
		if err != nil || got != tt.Command || tt.OS.NeedsChmod(tt.Script) != tt.NeedsChmod {
			t.Errorf("command for %+v: %q, %v, chmod %v", tt, got, err, tt.OS.NeedsChmod(tt.Script))
		}
	}
	t.Logf("%d names, %d sessions, %d words, %d commands", len(file.Image), len(file.Session),
		len(file.QuotePOSIX)+len(file.QuoteWindows), len(file.Command))
}

type quoteCase struct{ Value, Quoted, Error string }

func checkQuotes(t *testing.T, os harbor.OS, cases []quoteCase) {
	t.Helper()
	for _, tt := range cases {
		got, err := os.Quote(tt.Value)
		if tt.Error != "" {
			assertRaised(t, err, exception.ValueError, tt.Error)
		} else if err != nil || got != tt.Quoted {
			t.Errorf("%s quotes %q as %q, %v; want %q", os, tt.Value, got, err, tt.Quoted)
		}
	}
}

func TestArtifactVectors(t *testing.T) {
	t.Parallel()
	var file struct {
		Root      string `json:"artifacts_root"`
		Placement []struct {
			Source              string
			Destination         *string
			HostPath            string `json:"host_path"`
			ManifestDestination string `json:"manifest_destination"`
			UploadTarget        string `json:"upload_target"`
		}
		ImplicitEntry []struct {
			Declared  json.RawMessage
			Effective []artifactRow
		} `json:"implicit_entry"`
	}
	vector(t, "tasks/artifacts.json", &file)
	for _, tt := range file.Placement {
		a := harbor.Artifact{Source: tt.Source, Destination: tt.Destination}
		rel := a.RelPath()
		host := file.Root
		if rel != "." {
			host += "/" + rel
		}
		if host != tt.HostPath || a.ManifestDestination() != tt.ManifestDestination || a.UploadTarget() != tt.UploadTarget {
			t.Errorf("%+v: %q, %q, %q", tt, host, a.ManifestDestination(), a.UploadTarget())
		}
		if inside := len(path.Clean(host)) >= len(file.Root) && path.Clean(host)[:len(file.Root)] == file.Root; a.Escapes() == inside {
			t.Errorf("%q escapes: %v", host, a.Escapes())
		}
	}
	for _, tt := range file.ImplicitEntry {
		doc, err := value.Decode(tt.Declared)
		if err != nil {
			t.Fatal(err)
		}
		declared, _, err := schema.Validate(doc, schema.List(harbor.DecodeArtifact))
		if err != nil {
			t.Fatal(err)
		}
		var got []artifactRow
		for _, a := range harbor.EffectiveArtifacts(declared) {
			got = append(got, artifactRow{a.Source, a.Destination, a.Exclude})
		}
		if diff := cmp.Diff(tt.Effective, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.Declared, diff)
		}
	}
	t.Logf("%d placements, %d lists", len(file.Placement), len(file.ImplicitEntry))
}

type artifactRow struct {
	Source      string
	Destination *string
	Exclude     []string
}

func TestManifest(t *testing.T) {
	t.Parallel()
	got := string(harbor.AppendManifest(nil, []harbor.ManifestEntry{
		{Source: "/é", Destination: "artifacts/é", Type: harbor.ManifestFile, Status: harbor.ManifestFailed},
	}))
	want := "[\n  {\n    \"source\": \"/\\u00e9\",\n    \"destination\": \"artifacts/\\u00e9\",\n    \"type\": \"file\",\n    \"status\": \"failed\"\n  }\n]"
	if got != want {
		t.Errorf("got %s", got)
	}
}

func TestNetworkPlanVectors(t *testing.T) {
	t.Parallel()
	type policy struct {
		Mode  harbor.NetworkMode `json:"network_mode"`
		Hosts []string           `json:"allowed_hosts"`
	}
	type plan struct {
		Step             *string
		VerifierMode     harbor.VerifierMode `json:"verifier_mode"`
		AgentBaseline    policy              `json:"agent_env_baseline"`
		AgentPhase       policy              `json:"agent_phase"`
		VerifierBaseline *policy             `json:"verifier_env_baseline"`
		VerifierPhase    policy              `json:"verifier_phase"`
	}
	var cases []struct {
		Name             string
		TOML             string
		AgentHosts       []string `json:"agent_extra_allowed_hosts"`
		EnvironmentHosts []string `json:"environment_extra_allowed_hosts"`
		Plans            []plan
	}
	vector(t, "tasks/network-plan.json", &cases)
	of := func(n harbor.Network) policy { return policy{n.Mode, append([]string{}, n.AllowedHosts...)} }
	for _, tt := range cases {
		t.Run(tt.Name, func(t *testing.T) {
			t.Parallel()
			cfg, _, err := harbor.ParseConfig([]byte(tt.TOML))
			if err != nil {
				t.Fatal(err)
			}
			agentHosts, agentErr := harbor.NormalizeHosts(tt.AgentHosts)
			envHosts, envErr := harbor.NormalizeHosts(tt.EnvironmentHosts)
			if agentErr != nil || envErr != nil {
				t.Fatal(agentErr, envErr)
			}
			steps := []*harbor.Step{nil}
			if cfg.HasSteps() {
				steps = nil
				for i := range cfg.Steps {
					steps = append(steps, &cfg.Steps[i])
				}
			}
			var got []plan
			for _, step := range steps {
				p := cfg.PlanNetwork(step, agentHosts, envHosts)
				row := plan{VerifierMode: cfg.VerifierMode(step), AgentBaseline: of(p.AgentBaseline), AgentPhase: of(p.AgentPhase), VerifierPhase: of(p.VerifierPhase)}
				if step != nil {
					row.Step = &step.Name
				}
				if p.VerifierBaseline != nil {
					base := of(*p.VerifierBaseline)
					row.VerifierBaseline = &base
				}
				got = append(got, row)
			}
			if diff := cmp.Diff(tt.Plans, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Logf("%d cases", len(cases))
}

func TestSwitchingOfPolicies(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, toml, want string }{
		{"equal", "[agent]\nnetwork_mode = \"public\"\n", ""},
		{"agent", "[agent]\nnetwork_mode = \"no-network\"\n",
			"[agent] agent phase network policy differs from the agent environment baseline, but this environment cannot change network policy after start."},
		{"separate verifier", "[verifier]\nnetwork_mode = \"no-network\"\nenvironment_mode = \"separate\"\n",
			"[verifier] verifier phase network policy differs from the separate verifier environment baseline, but this environment cannot change network policy after start."},
	}
	for _, tt := range tests {
		cfg, _, err := harbor.ParseConfig([]byte(tt.toml))
		if err != nil {
			t.Fatal(err)
		}
		plan := cfg.PlanNetwork(nil, nil, nil)
		err = plan.CheckSwitching("")
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		assertRaised(t, err, exception.ValueError, tt.want)
	}
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		timeout harbor.Timeout
		want    *float64
	}{
		{"none", harbor.Timeout{Max: new(5.0), Multiplier: 2}, nil},
		{"base", harbor.Timeout{Base: new(600.0), Multiplier: 1}, new(600.0)},
		{"override", harbor.Timeout{Base: new(600.0), Override: new(30.0), Multiplier: 2}, new(60.0)},
		{"override of 0", harbor.Timeout{Base: new(600.0), Override: new(0.0), Multiplier: 1}, new(600.0)},
		{"cap before multiplier", harbor.Timeout{Base: new(600.0), Max: new(100.0), Multiplier: 2}, new(200.0)},
		{"cap of 0", harbor.Timeout{Base: new(600.0), Max: new(0.0), Multiplier: 1}, new(600.0)},
		{"phase multiplier", harbor.Timeout{Base: new(10.0), Multiplier: 2, PhaseMultiplier: new(0.5)}, new(5.0)},
		{"phase multiplier of 0", harbor.Timeout{Base: new(10.0), Multiplier: 2, PhaseMultiplier: new(0.0)}, new(0.0)},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.timeout.Seconds()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestStepsAndTheTask(t *testing.T) {
	t.Parallel()
	cfg, _, err := harbor.ParseConfig([]byte("[agent]\ntimeout_sec = 5\nuser = \"a\"\n[verifier]\ntimeout_sec = 7\nenv = {A = \"1\", B = \"1\"}\nuser = 0\n" +
		"[[steps]]\nname = \"plain\"\n[[steps]]\nname = \"own\"\n[steps.agent]\ntimeout_sec = 6\nuser = 12\n[steps.verifier]\nenv = {B = \"2\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var job harbor.Env
	job.Set("C", "3")
	plain, own := &cfg.Steps[0], &cfg.Steps[1]
	env := cfg.VerifierEnv(own, job)
	b, _ := env.Get("B")
	got := []any{
		*cfg.AgentTimeoutSec(nil), *cfg.AgentTimeoutSec(plain), *cfg.AgentTimeoutSec(own), cfg.VerifierTimeoutSec(nil), cfg.VerifierTimeoutSec(plain),
		cfg.AgentUser(plain).String(), cfg.AgentUser(own).String(), cfg.VerifierUser(own).String(), env.Len(), b,
	}
	want := []any{5.0, 5.0, 6.0, 7.0, 600.0, "a", "12", "0", 3, "2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
