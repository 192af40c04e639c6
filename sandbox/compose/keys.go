package compose

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/tree"
	"go.yaml.in/yaml/v3"

	"github.com/proctor-run/proctor/sandbox"
)

// refused are keys of the compose specification that are not carried out here,
// with the reason.
var refused = map[tree.Path]string{
	"models":                               "models are not run",
	"jobs":                                 "jobs are not run",
	"services.*.annotations":               "not carried out",
	"services.*.cpu_count":                 "for Windows only",
	"services.*.cpu_percent":               "for Windows only",
	"services.*.credential_spec":           "for Windows only",
	"services.*.isolation":                 "for Windows only",
	"services.*.models":                    "models are not run",
	"services.*.post_start":                "hooks are not run",
	"services.*.pre_start":                 "hooks are not run",
	"services.*.pre_stop":                  "hooks are not run",
	"services.*.provider":                  "other programs are not run",
	"services.*.pull_refresh_after":        "not carried out; use pull_policy always",
	"services.*.umask":                     "not carried out",
	"services.*.use_api_socket":            "mount the socket instead",
	"services.*.volumes.[].image":          "images are not mounted",
	"services.*.volumes.[].bind.recursive": "not carried out",
	"services.*.volumes.[].volume.subpath": "not carried out",
	"services.*.networks.*.gw_priority":    "not carried out; use priority",
	"services.*.networks.*.interface_name": "not carried out",

	"services.*.build.additional_contexts": "one build context is sent",
	"services.*.build.entitlements":        "builds get no privileges",
	"services.*.build.isolation":           "for Windows only",
	"services.*.build.privileged":          "builds get no privileges",
	"services.*.build.secrets":             "builds get no secrets",
	"services.*.build.ssh":                 "builds get no keys",

	"services.*.deploy.resources.reservations.generic_resources": "for swarms only",

	"secrets.*.external":        "for swarms only",
	"secrets.*.driver":          "for swarms only",
	"secrets.*.template_driver": "for swarms only",
	"configs.*.external":        "for swarms only",
	"configs.*.template_driver": "for swarms only",
}

// idle are keys that have no effect on what runs here, as they have none in
// "docker compose up" on a single engine; they are named in a warning.
var idle = []tree.Path{
	"services.*.build.tags",
	"services.*.deploy.endpoint_mode",
	"services.*.deploy.labels",
	"services.*.deploy.placement",
	"services.*.deploy.rollback_config",
	"services.*.deploy.update_config",
	"services.*.deploy.resources.reservations.cpus",
	"services.*.ports.[].mode",
	"services.*.volumes.[].consistency",
}

// unremarkable are values that say no more than that a key is not used.
var unremarkable = map[tree.Path][]any{
	"services.*.isolation":        {"default"},
	"services.*.ports.[].mode":    {"ingress", "host"},
	"services.*.build.privileged": {false},
	"services.*.use_api_socket":   {false},
	"secrets.*.external":          {false},
	"configs.*.external":          {false},
	"services.*.volumes.[].image": {map[string]any(nil)},
}

// screenedKeys are the patterns of all keys that deserve a look.
func screenedKeys() []loader.UnsupportedAttributePattern {
	pattern := func(p tree.Path) loader.UnsupportedAttributePattern {
		return loader.UnsupportedAttributePattern{Path: p, Detect: func(v any) bool {
			for _, plain := range unremarkable[p] {
				if fmt.Sprint(plain) == fmt.Sprint(v) {
					return false
				}
			}
			return v != nil
		}}
	}
	var all []loader.UnsupportedAttributePattern
	for p := range refused {
		all = append(all, pattern(p))
	}
	for _, p := range idle {
		all = append(all, pattern(p))
	}
	return all
}

// screen refuses the keys that are not carried out, all in one error, and
// notes those that have no effect.
func (m *model) screen(found []loader.UnsupportedAttribute, files []string) error {
	var errs []error
	for _, f := range found {
		place := locate(string(f.Path), files)
		if slices.ContainsFunc(idle, f.Path.Matches) {
			m.notes = append(m.notes, fmt.Sprintf("%s: key %s has no effect", place, f.Path))
			continue
		}
		why := "not carried out"
		for p, reason := range refused {
			if f.Path.Matches(p) {
				why = reason
			}
		}
		errs = append(errs, fmt.Errorf("%s: key %s: %s: %w", place, f.Path, why, sandbox.ErrUnsupported))
	}
	return errors.Join(errs...)
}

// locate names the file, and where it can the line, that gives a key: the last
// of the files that has it. Keys of included files are laid to the file that
// includes them.
func locate(key string, files []string) string {
	for _, name := range slices.Backward(files) {
		text, err := readSmall(name)
		if err != nil {
			continue
		}
		var doc yaml.Node
		if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&doc); err != nil || len(doc.Content) == 0 {
			continue
		}
		if n := find(doc.Content[0], strings.Split(key, ".")); n != nil {
			return name + ":" + strconv.Itoa(n.Line)
		}
	}
	if len(files) == 0 {
		return "compose project"
	}
	return files[0]
}

// find returns the node of a key's name, nil when it is not there.
func find(n *yaml.Node, path []string) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if len(path) == 0 {
		return n
	}
	switch n.Kind {
	case yaml.MappingNode:
		// A key with dots in it is found as several words.
		for i := 0; i+1 < len(n.Content); i += 2 {
			name, value := n.Content[i], n.Content[i+1]
			words := strings.Split(name.Value, ".")
			if len(words) > len(path) || !slices.Equal(words, path[:len(words)]) {
				continue
			}
			if len(words) == len(path) {
				return name
			}
			if found := find(value, path[len(words):]); found != nil {
				return found
			}
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if path[0] != tree.PathMatchList {
				break
			}
			if found := find(item, path[1:]); found != nil {
				return found
			}
		}
	}
	return nil
}
