package runsc

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	_ "unsafe" // for go:linkname

	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	sentry "gvisor.dev/gvisor/runsc/boot/filter"
	gofer "gvisor.dev/gvisor/runsc/fsgofer/filter"
)

// gVisor bounds the system calls of its own processes, and takes a program that was compiled
// before where it has one under the name of its options. Its module comes without any: the
// build that makes them is not Go's, and the maps are not exported. Compiling and optimising
// takes a quarter of a sandbox's start.
//
//go:linkname sentryPrograms gvisor.dev/gvisor/runsc/boot/filter.precompiledPrograms
var sentryPrograms map[string]precompiledseccomp.Program

//go:linkname goferPrograms gvisor.dev/gvisor/runsc/fsgofer/filter.precompiledPrograms
var goferPrograms map[string]precompiledseccomp.Program

// filters are the programs of one architecture: what gVisor's own compiler makes of its own
// rules, for the options that sandboxes have.
type filters struct {
	version       string // of gVisor's module
	sentry, gofer []storedFilter
}

// storedFilter is a precompiledseccomp.Program.
type storedFilter struct {
	options string           // what gVisor asks for
	code    string           // little-endian words, in base64
	offsets map[string][]int // of variables, in words
}

func (s storedFilter) program() (precompiledseccomp.Program, error) {
	code, err := base64.StdEncoding.DecodeString(s.code)
	if err != nil {
		return precompiledseccomp.Program{}, fmt.Errorf("the compiled filter for %s: %w", s.options, err)
	}
	p := precompiledseccomp.Program{Name: s.options, Bytecode32: make([]uint32, len(code)/4), VarOffsets: s.offsets}
	for i := range p.Bytecode32 {
		p.Bytecode32[i] = binary.LittleEndian.Uint32(code[4*i:])
	}
	return p, nil
}

// gvisorModule is gVisor's.
const gvisorModule = "gvisor.dev/gvisor"

// gvisorVersion is that of the module in this program, and empty where it is not known.
func gvisorVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, d := range info.Deps {
		if d.Path == gvisorModule && d.Replace == nil {
			return d.Version
		}
	}
	return ""
}

// filtersFor are the programs for a version of gVisor: another one has rules of its own.
func filtersFor(version string) filters {
	if f := compiledFilters(); version != "" && f.version == version {
		return f
	}
	return filters{}
}

// giveFilters lets gVisor of a version have its programs. Those it has not it compiles.
func giveFilters(version string) error {
	compiled := filtersFor(version)
	// What it registers by itself comes first: it does that once.
	_, _ = sentry.ListPrecompiled(), gofer.ListPrecompiled()
	return errors.Join(give(sentryPrograms, compiled.sentry), give(goferPrograms, compiled.gofer))
}

func give(to map[string]precompiledseccomp.Program, stored []storedFilter) error {
	for _, s := range stored {
		p, err := s.program()
		if err != nil {
			return err
		}
		to[s.options] = p
	}
	return nil
}
