package terminus

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/proctor-run/proctor/agent"
)

// skillFile is the manifest of a skill in the sandbox.
type skillFile struct{ path, content string }

// skill is what a manifest says of its skill.
type skill struct{ name, description string }

// skillsSection is what the model is told of the skills; empty where there is none
// (section 8.1).
func skillsSection(files []skillFile) string {
	var b strings.Builder
	for _, f := range files {
		s, ok := frontMatter(f.content)
		if !ok {
			continue
		}
		b.WriteString("  <skill>\n    <name>" + escape(s.name) + "</name>\n    <description>" + escape(s.description) +
			"</description>\n    <location>" + escape(f.path) + "</location>\n  </skill>\n")
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n<available_skills>\n" + b.String() + "</available_skills>"
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// frontMatter reads the YAML at the head of a manifest.
func frontMatter(content string) (skill, bool) {
	rest, ok := strings.CutPrefix(content, "---\n")
	head, _, closed := strings.Cut(rest, "\n---")
	if !ok || !closed {
		return skill{}, false
	}
	var fields struct{ Name, Description yaml.Node }
	if err := yaml.Unmarshal([]byte(head), &fields); err != nil {
		return skill{}, false
	}
	name, named := scalar(fields.Name)
	description, described := scalar(fields.Description)
	return skill{name, strings.TrimSpace(description)}, named && described
}

func scalar(n yaml.Node) (string, bool) {
	return n.Value, n.Kind == yaml.ScalarNode && n.Tag != "!!null" && n.Value != ""
}

// serversNote tells the model of tool servers; empty where there are none (section 8.2).
func serversNote(servers []agent.MCPServer) string {
	if len(servers) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\nMCP Servers:\nThe following servers of the Model Context Protocol can be used for this task.\n")
	for _, s := range servers {
		b.WriteString("- " + s.Name + ": " + s.Transport + " transport, ")
		if s.Transport == "stdio" {
			b.WriteString("command: " + strings.Join(append([]string{s.Command}, s.Args...), " ") + "\n")
			continue
		}
		b.WriteString("url: " + s.URL + "\n")
	}
	return b.String()
}
