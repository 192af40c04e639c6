package build

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"

	"github.com/proctor-run/proctor/sandbox"
)

// maxInstructions of one Dockerfile.
const maxInstructions = 5000

const scratch = "scratch"

// plan is a Dockerfile whose stages are resolved.
type plan struct {
	arch   string
	lex    *shell.Lex
	global *vars // for FROM, and what ARG without a value takes
	stages []*stage
	needed []int // the stages to evaluate, in order; the last one is built
}

// stage begins with another stage, an image, or nothing.
type stage struct {
	instructions.Stage
	line     int
	platform string
	below    int    // index of the stage that it begins with, or -1
	base     string // otherwise the image, or scratch
}

// parse reads a Dockerfile. Errors name the line.
func parse(text, arch string) (*plan, error) {
	parsed, err := parser.Parse(strings.NewReader(text))
	if err != nil {
		return nil, locate(err)
	}
	if n := len(parsed.AST.Children); n > maxInstructions {
		return nil, fmt.Errorf("reading the Dockerfile: %d instructions, at most %d", n, maxInstructions)
	}
	stages, args, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return nil, locate(err)
	}
	if len(stages) == 0 {
		return nil, errors.New("reading the Dockerfile: it has no FROM instruction")
	}
	p := &plan{arch: arch, lex: shell.NewLex(parsed.EscapeToken), global: platformVars(arch)}
	for i := range args {
		if err := p.globalArgs(&args[i]); err != nil {
			return nil, atLine(lineOf(args[i].Location()), "ARG", err)
		}
	}
	for _, s := range stages {
		if err := p.addStage(s); err != nil {
			return nil, atLine(lineOf(s.Location), "FROM "+s.BaseName, err)
		}
	}
	return p, p.findNeeded()
}

// platformVars are the variables that are set before any ARG (Dockerfile
// reference, "Automatic platform ARGs in the global scope").
func platformVars(arch string) *vars {
	v := newVars(nil)
	for _, of := range []string{"TARGET", "BUILD"} {
		v.set(of+"PLATFORM", "linux/"+arch)
		v.set(of+"OS", "linux")
		v.set(of+"ARCH", arch)
		v.set(of+"VARIANT", "")
	}
	return v
}

func (p *plan) globalArgs(c *instructions.ArgCommand) error {
	for _, a := range c.Args {
		if a.Value == nil {
			continue
		}
		value, err := expand(p.lex, *a.Value, p.global)
		if err != nil {
			return err
		}
		if err := p.global.add(a.Key, value); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) addStage(s instructions.Stage) error {
	st := &stage{Stage: s, line: lineOf(s.Location), below: -1}
	var err error
	if st.base, err = expand(p.lex, s.BaseName, p.global); err != nil {
		return err
	}
	if st.base == "" {
		return errors.New("no image is named")
	}
	if st.platform, err = expand(p.lex, s.Platform, p.global); err != nil {
		return err
	}
	if i, ok := p.stageNamed(st.base); ok {
		st.below = i
	}
	p.stages = append(p.stages, st)
	return nil
}

// stageNamed finds the last of the stages so far with a name.
func (p *plan) stageNamed(name string) (int, bool) {
	for i := len(p.stages) - 1; i >= 0; i-- {
		if p.stages[i].Name != "" && strings.EqualFold(p.stages[i].Name, name) {
			return i, true
		}
	}
	return 0, false
}

// findNeeded follows what the last stage needs. A stage needs only earlier ones.
func (p *plan) findNeeded() error {
	need := make([]bool, len(p.stages))
	need[len(need)-1] = true
	for i := len(p.stages) - 1; i >= 0; i-- {
		if !need[i] {
			continue
		}
		if b := p.stages[i].below; b >= 0 {
			need[b] = true
		}
		for _, f := range p.stages[i].froms() {
			j, ok, err := p.stageFrom(f.name, i)
			if err != nil {
				return atLine(f.line, f.text, err)
			}
			if ok {
				need[j] = true
			}
		}
	}
	for i, n := range need {
		if n {
			p.needed = append(p.needed, i)
		}
	}
	return nil
}

// imageRef is a place where a Dockerfile names an image or a stage.
type imageRef struct {
	name, text string
	line       int
}

// froms lists what a stage copies from.
func (s *stage) froms() []imageRef {
	var refs []imageRef
	add := func(c instructions.Command, from string) {
		if from != "" {
			refs = append(refs, imageRef{from, code(c), lineOf(c.Location())})
		}
	}
	for _, c := range s.Commands {
		switch c := c.(type) {
		case *instructions.CopyCommand:
			add(c, c.From)
		case *instructions.RunCommand:
			for _, m := range instructions.GetMounts(c) {
				add(c, m.From)
			}
		}
	}
	return refs
}

// stageFrom finds the stage that --from names in stage i; ok is false when it
// is an image.
func (p *plan) stageFrom(from string, i int) (j int, ok bool, err error) {
	if n, err := strconv.Atoi(from); err == nil {
		j, ok = n, n >= 0 && n < len(p.stages)
		if !ok {
			return 0, false, fmt.Errorf("there is no stage %s", from)
		}
	} else if j, ok = p.stageNamed(from); !ok {
		return 0, false, nil
	}
	if j >= i {
		return 0, false, fmt.Errorf("stage %q is not complete here: it has to stand before the stage that copies from it", from)
	}
	return j, true, nil
}

// images lists the images that the needed stages begin with or copy from.
func (p *plan) images() []imageRef {
	var refs []imageRef
	for _, i := range p.needed {
		s := p.stages[i]
		if s.below < 0 && s.base != scratch {
			refs = append(refs, imageRef{s.base, s.SourceCode, s.line})
		}
		for _, f := range s.froms() {
			if _, ok, err := p.stageFrom(f.name, i); err == nil && !ok && f.name != scratch {
				refs = append(refs, f)
			}
		}
	}
	return refs
}

// steps counts what may need a sandbox.
func (p *plan) steps() int {
	n := 0
	for _, i := range p.needed {
		for _, c := range p.stages[i].Commands {
			switch c.(type) {
			case *instructions.RunCommand, *instructions.CopyCommand, *instructions.AddCommand, *instructions.WorkdirCommand:
				n++
			}
		}
	}
	return n
}

// unsupported is the error for what only an engine can build.
func unsupported(what string) error {
	return fmt.Errorf("%s: %w; use -e docker", what, sandbox.ErrUnsupported)
}

// check refuses what is known not to work before anything is done.
func (p *plan) check() error {
	for _, i := range p.needed {
		s := p.stages[i]
		if err := p.checkStage(s); err != nil {
			return atLine(s.line, s.SourceCode, err)
		}
		for _, c := range s.Commands {
			if err := checkCommand(c); err != nil {
				return atLine(lineOf(c.Location()), code(c), err)
			}
		}
	}
	return nil
}

func (p *plan) checkStage(s *stage) error {
	if s.platform != "" && !p.ours(s.platform) {
		return unsupported(fmt.Sprintf("an image for platform %q on linux/%s", s.platform, p.arch))
	}
	if s.below < 0 {
		return nil
	}
	for _, c := range p.stages[s.below].Commands {
		if _, ok := c.(*instructions.OnbuildCommand); ok {
			return unsupported(fmt.Sprintf("beginning with a stage that has an ONBUILD instruction (line %d)", lineOf(c.Location())))
		}
	}
	return nil
}

// ours reports whether a platform is this machine's.
func (p *plan) ours(platform string) bool {
	os, arch, ok := strings.Cut(strings.ToLower(platform), "/")
	if !ok {
		return os == "linux" || os == p.arch
	}
	switch arch {
	case "x86_64", "x86-64", "amd64/v1":
		arch = "amd64"
	case "aarch64", "arm64/v8":
		arch = "arm64"
	}
	return os == "linux" && arch == p.arch
}

func checkCommand(c instructions.Command) error {
	switch c := c.(type) {
	case *instructions.AddCommand:
		return checkSources(c.SourcePaths)
	case *instructions.CopyCommand:
		if c.Parents {
			return unsupported("--parents")
		}
		for _, s := range c.SourcePaths {
			if isRemote(s) {
				return errors.New("only ADD can fetch from a network")
			}
		}
	case *instructions.RunCommand:
		if instructions.GetSecurity(c) == instructions.SecurityInsecure {
			return unsupported("--security=insecure")
		}
		if len(instructions.GetDevices(c)) > 0 {
			return unsupported("--device")
		}
	}
	return nil
}

// checkSources refuses what ADD would fetch.
func checkSources(sources []string) error {
	for _, s := range sources {
		if isRemote(s) {
			return unsupported(fmt.Sprintf("fetching %q (a RUN instruction with curl or wget can)", s))
		}
	}
	return nil
}

// isRemote knows URLs and what git takes for one.
func isRemote(source string) bool {
	for _, prefix := range []string{"http://", "https://", "git://", "ssh://", "ftp://", "git@"} {
		if strings.HasPrefix(strings.ToLower(source), prefix) {
			return true
		}
	}
	return false
}

// atLine says where in the Dockerfile an error is.
func atLine(line int, instruction string, err error) error {
	instruction, _, _ = strings.Cut(instruction, "\n")
	const limit = 100
	if len(instruction) > limit {
		instruction = instruction[:limit] + "…"
	}
	if !utf8.ValidString(instruction) {
		instruction = strings.ToValidUTF8(instruction, "")
	}
	if instruction != "" {
		return fmt.Errorf("line %d of the Dockerfile: %s: %w", line, instruction, err)
	}
	return fmt.Errorf("line %d of the Dockerfile: %w", line, err)
}

// locate names the line of a parser's error.
func locate(err error) error {
	if le, ok := errors.AsType[*parser.LocationError](err); ok && len(le.Locations) > 0 {
		if line := lineOf(le.Locations[0]); line > 0 {
			return atLine(line, "", le.Unwrap())
		}
	}
	return fmt.Errorf("reading the Dockerfile: %w", err)
}

func lineOf(location []parser.Range) int {
	if len(location) == 0 {
		return 0
	}
	return location[0].Start.Line
}

// code is an instruction as it is written.
func code(c instructions.Command) string {
	if s, ok := c.(fmt.Stringer); ok {
		return s.String()
	}
	return strings.ToUpper(c.Name())
}
