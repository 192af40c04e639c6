package runtimes

import specs "github.com/opencontainers/runtime-spec/specs-go"

func seccompArchitectures() []specs.Arch { return []specs.Arch{specs.ArchAARCH64, specs.ArchARM} }
