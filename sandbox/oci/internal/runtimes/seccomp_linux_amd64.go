package runtimes

import specs "github.com/opencontainers/runtime-spec/specs-go"

func seccompArchitectures() []specs.Arch {
	return []specs.Arch{specs.ArchX86_64, specs.ArchX86, specs.ArchX32}
}
