package harborcube

import (
	"math"
	"path/filepath"
	"strings"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/value"
)

// Metadata is what CUBE knows of a Harbor task without making it (CUBE
// server, section 3.1).
type Metadata struct {
	cube.TaskMetadata
	Difficulty         string   `json:"difficulty" default:"unknown"`
	Category           string   `json:"category" default:""`
	Tags               []string `json:"tags" default:"[]"`
	MaxAgentTimeoutSec int      `json:"max_agent_timeout_sec" default:"900"` // a hint
	// Path of the task directory on the machine that makes the task.
	Path string `json:"path"`
	// OracleReward is what the task's own solution gets.
	OracleReward float64 `json:"oracle_reward" default:"1.0"`
}

// TypeName is the name of the type in documents.
func (*Metadata) TypeName() string { return "terminalbench2_cube.task.TerminalBench2TaskMetadata" }

// oracleRewardKey in [metadata] of a task.toml says what the task's solution
// gets where that is not 1: a solution of an example may fail on purpose.
const oracleRewardKey = "oracle_reward"

// Bounds and defaults of metadata.
const (
	abstractLength     = 200
	defaultRAMGB       = 4
	defaultDiskGB      = 10
	defaultAgentSec    = 900
	maxAbstractTimeout = 1 << 31
)

// NewMetadata reads the metadata of a task directory.
func NewMetadata(dir string) (*Metadata, error) {
	t, err := harbor.Load(dir, harbor.LoadOptions{})
	if err != nil {
		return nil, err
	}
	return metadataOf(t), nil
}

func metadataOf(t *harbor.Task) *Metadata {
	m := &Metadata{Path: t.Dir, Difficulty: "unknown", Tags: []string{}, MaxAgentTimeoutSec: defaultAgentSec, OracleReward: 1}
	m.ID, m.Split = filepath.Base(t.Dir), "test"
	line, _, _ := strings.Cut(strings.TrimSpace(t.Instruction), "\n")
	m.AbstractDescription = cutRunes(strings.TrimSpace(line), abstractLength)
	m.ContainerConfig = containerConfig(t)
	if sec := t.Config.Agent.TimeoutSec; sec != nil && *sec >= 0 && *sec < maxAbstractTimeout {
		m.MaxAgentTimeoutSec = int(*sec)
	}
	free := t.Config.Metadata
	if free == nil {
		return m
	}
	setText(&m.Difficulty, free, "difficulty")
	setText(&m.Category, free, "category")
	if v, ok := free.Get("tags"); ok {
		list, _ := v.(value.List)
		for _, item := range list {
			if s, ok := item.(value.Str); ok {
				m.Tags = append(m.Tags, string(s))
			}
		}
	}
	if v, ok := free.Get(oracleRewardKey); ok {
		if n, ok := v.(value.Number); ok {
			if f, err := value.ToFloat(n); err == nil {
				m.OracleReward = f
			}
		}
	}
	return m
}

func setText(dst *string, o *value.Object, key string) {
	if v, ok := o.Get(key); ok {
		if s, ok := v.(value.Str); ok {
			*dst = string(s)
		}
	}
}

func cutRunes(s string, limit int) string {
	if runes := []rune(s); len(runes) > limit {
		return string(runes[:limit])
	}
	return s
}

// cubeContainer describes the environment as far as CUBE has words for it; the
// task itself is started as task.toml says.
func containerConfig(t *harbor.Task) *cube.ContainerConfig {
	env := &t.Config.Environment
	c := cube.NewContainerConfig("")
	if env.DockerImage != nil && !t.HasDockerfile() {
		c.Image = *env.DockerImage
	}
	c.CPUCores, c.RAMGB, c.DiskGB = 1, defaultRAMGB, defaultDiskGB
	if env.CPUs != nil {
		c.CPUCores = amount(env.CPUs)
	}
	if env.MemoryMB != nil {
		c.RAMGB = amount(env.MemoryMB) / 1024
	}
	if env.StorageMB != nil {
		c.DiskGB = amount(env.StorageMB) / 1024
	}
	c.GPU = amount(env.GPUs) > 0
	return c
}

// amount reads a resource number; one beyond any machine is very large.
func amount(n *value.Int) float64 {
	if n == nil {
		return 0
	}
	f, err := value.ToFloat(*n)
	if err != nil {
		return float64(n.Sign()) * math.MaxInt64
	}
	return f
}
