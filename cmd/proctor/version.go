package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/internal/version"
)

func newVersion(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, and the version of Harbor that is reproduced",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return outputError(json.NewEncoder(env.Stdout).Encode(version.Current()))
			}
			_, err := fmt.Fprint(env.Stdout, versionText())
			return outputError(err)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// versionText is the version as one line.
func versionText() string {
	v := version.Current()
	return fmt.Sprintf("proctor %s (%s, %s/%s), compatible with Harbor %s\n", v.Version, v.Go, v.OS, v.Arch, v.Harbor)
}
