package harborcube

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
	"github.com/proctor-run/proctor/verify"
)

// previewLength is how many characters of the tests' output infos show.
const previewLength = 1000

// maxReport bounds what is read of a test report or output, in bytes.
const maxReport = 64 << 20

// maxCounted bounds the tests that a summary line may claim.
const maxCounted = 100_000

// info is what a step tells of an evaluation (CUBE server, section 3.2).
func (v *Verdict) info(logDir string) cube.Info {
	output := ""
	if data, err := bounded.ReadIn(logDir, verify.OutputFile, maxReport); err == nil {
		output = strings.ToValidUTF8(string(data), "\uFFFD")
	}
	results, ok := ctrfResults(logDir)
	if !ok {
		results = pytestResults(output)
	}
	passed := 0
	for _, status := range results.All() {
		if status == value.Value(value.Str(testPassed)) {
			passed++
		}
	}
	total := results.Len()
	info := cube.Pairs(
		"done", true,
		"passed", passed,
		"total", total,
		"all_passed", total > 0 && passed == total,
		"test_results", results,
		"output_preview", cutRunes(output, previewLength),
		"rewards", nil,
		"verifier_exit_code", v.Verification.ExitCode,
		"verifier_error", nil,
		"reward_source", nil,
	)
	if v.Err != nil {
		cube.Put(info, "verifier_error", cube.Pairs("type", cube.ErrorType(v.Err), "message", v.Err.Error()))
		return info
	}
	if v.Verification.Rewards != nil {
		cube.Put(info, "rewards", v.Verification.Rewards.Object())
	}
	cube.Put(info, "reward_source", rewardSource(v.Verification.Evidence))
	return info
}

// rewardSource names the file that rewards were read from.
func rewardSource(e reward.Evidence) string {
	for _, f := range e.After {
		if f.Name == reward.JSONFile {
			return reward.JSONFile
		}
	}
	return reward.TextFile
}

// The words for results of tests.
const (
	testPassed = "passed"
	testFailed = "failed"
)

// ctrfResults reads a report in the Common Test Report Format: name to passed
// or failed.
func ctrfResults(logDir string) (*value.Object, bool) {
	data, err := bounded.ReadIn(logDir, "ctrf.json", maxReport)
	if err != nil {
		return nil, false
	}
	doc, err := value.Decode(data)
	if err != nil {
		return nil, false
	}
	tests, ok := member(member(doc, "results"), "tests").(value.List)
	if !ok {
		return nil, false
	}
	out := value.NewObject(len(tests))
	for _, test := range tests {
		name, isText := member(test, "name").(value.Str)
		status, hasStatus := member(test, "status").(value.Str)
		if !isText || !hasStatus {
			return nil, false
		}
		verdict := testFailed
		if status == "passed" || status == "skipped" {
			verdict = testPassed
		}
		out.Set(string(name), value.Str(verdict))
	}
	return out, true
}

func member(v value.Value, key string) value.Value {
	o, ok := v.(*value.Object)
	if !ok {
		return nil
	}
	got, _ := o.Get(key)
	return got
}

var (
	summaryLine = regexp.MustCompile(`(?im)^=+ short test summary info =+`)
	countPassed = regexp.MustCompile(`(\d+) passed`)
	countFailed = regexp.MustCompile(`(\d+) failed`)
)

// pytestResults reads what pytest prints: its short summary, or else the
// counts of its last line (CUBE server, section 3.1).
func pytestResults(output string) *value.Object {
	out := value.NewObject(0)
	at := summaryLine.FindStringIndex(output)
	if at == nil {
		addCounted(out, countPassed.FindStringSubmatch(output), testPassed)
		addCounted(out, countFailed.FindStringSubmatch(output), testFailed)
		return out
	}
	_, rest, _ := strings.Cut(output[at[1]:], "\n")
	for line := range strings.Lines(rest) {
		word, test, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue
		}
		verdict := testFailed
		switch strings.Trim(word, ":") {
		case "PASSED", "XFAIL", "SKIPPED":
			verdict = testPassed
		case "FAILED":
			if i := strings.LastIndex(test, " - "); i >= 0 {
				test = test[:i]
			}
		case "XPASS", "ERROR":
		default:
			continue
		}
		test = strings.TrimSpace(test)
		if _, name, ok := strings.Cut(test, "::"); ok {
			test = name
		}
		out.Set(test, value.Str(verdict))
	}
	return out
}

func addCounted(out *value.Object, match []string, verdict string) {
	if match == nil {
		return
	}
	n, err := strconv.Atoi(match[1])
	if err != nil {
		return
	}
	for i := range min(n, maxCounted) {
		out.Set(fmt.Sprintf("test_%s_%d", verdict, i), value.Str(verdict))
	}
}
