package harbor

import "github.com/proctor-run/proctor/internal/taskpath"

// Well-known paths inside a Linux environment (section 4.6). A Windows
// environment has the same below "C:".
const (
	AgentLogsDir    = "/logs/agent"
	VerifierLogsDir = taskpath.VerifierLogs
	ArtifactsDir    = "/logs/artifacts"
	TestsDir        = taskpath.Tests
	SolutionDir     = taskpath.Solution
	SkillsDir       = "/harbor/skills"
)

// Names of the entry scripts for Linux (section 1.2); see [OS.TestScript] for
// other systems.
const (
	testScript     = "test.sh"
	solutionScript = "solve.sh"
)

// InEnvironment returns a well-known path as the system spells it.
func (os OS) InEnvironment(path string) string {
	if os == Windows {
		return "C:" + path
	}
	return path
}

// testScript is the name of the verifier's entry (section 1.2).
func (os OS) TestScript() string {
	if os == Windows {
		return "test.bat"
	}
	return testScript
}

// solutionScript is the name of the solution's entry (section 1.2).
func (os OS) SolutionScript() string {
	if os == Windows {
		return "solve.bat"
	}
	return solutionScript
}
