package compose

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"
)

// maxComposeFiles is how many files a project may refer to.
const maxComposeFiles = 200

// references looks at the files that compose files include or extend before
// they are read: what is no regular file might never end.
type references struct {
	dir  string // of the project
	env  types.Mapping
	seen map[string]bool
}

// check follows the references of one file. What is not there, or is no YAML,
// is left for the reader to tell.
func (r *references) check(name string, text []byte) error {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		if decoder.Decode(&doc) != nil {
			return nil // the end, or what cannot be read
		}
		for _, ref := range referred(&doc, false, map[visit]bool{}) {
			if err := r.follow(name, ref); err != nil {
				return err
			}
		}
	}
}

// follow looks at a file that another one names. Whether a relative path
// starts at the project or at the file depends on where it stands: both are
// looked at.
func (r *references) follow(from, ref string) error {
	if text, err := template.SubstituteWithOptions(ref, r.env.Resolve, template.WithoutLogging); err == nil {
		ref = text
	}
	for _, base := range []string{r.dir, filepath.Dir(from)} {
		path := filepath.Clean(ref)
		if !filepath.IsAbs(path) {
			path = filepath.Join(base, path)
		}
		if r.seen[path] {
			continue
		}
		if r.seen[path] = true; len(r.seen) > maxComposeFiles {
			return fmt.Errorf("%s: the project refers to more than %d files", from, maxComposeFiles)
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			continue // a directory can be referred to, and cannot be read
		}
		text, err := readSmall(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		if err := r.check(path, text); err != nil {
			return err
		}
	}
	return nil
}

// visit is a node as it was looked at: for all its texts, or only for some.
type visit struct {
	node *yaml.Node
	all  bool
}

// referred lists the texts under include and extends, files among them. Each node is looked at once, so that aliases do not multiply.
func referred(n *yaml.Node, all bool, visited map[visit]bool) []string {
	if n == nil || visited[visit{n, all}] {
		return nil
	}
	visited[visit{n, all}] = true
	var found []string
	switch n.Kind {
	case yaml.ScalarNode:
		if all {
			found = append(found, n.Value)
		}
	case yaml.AliasNode:
		found = referred(n.Alias, all, visited)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			below := all || key == "include" || key == "extends"
			found = append(found, referred(n.Content[i+1], below, visited)...)
		}
	default:
		for _, item := range n.Content {
			found = append(found, referred(item, all, visited)...)
		}
	}
	return found
}
