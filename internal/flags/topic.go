package flags

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// topicKey is the annotation that names the topic of a flag.
const topicKey = "proctor_topic"

// Topic gives the flags that define defines a title, under which help lists them.
func Topic(fs *pflag.FlagSet, title string, define func()) {
	define()
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Annotations[topicKey] == nil {
			if f.Annotations == nil {
				f.Annotations = map[string][]string{}
			}
			f.Annotations[topicKey] = []string{title}
		}
	})
}

// ByTopic has help list the flags of a command under their topics, in the order of
// their definition.
func ByTopic(cmd *cobra.Command) {
	cmd.SetUsageFunc(func(c *cobra.Command) error {
		if _, err := fmt.Fprint(c.OutOrStderr(), usageByTopic(c)); err != nil {
			return fmt.Errorf("printing the flags: %w", err)
		}
		return nil
	})
}

func usageByTopic(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s\n", c.UseLine())
	if c.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", c.Example)
	}
	for _, t := range Topics(c.LocalFlags()) {
		fmt.Fprintf(&b, "\n%s flags:\n%s\n", t.Title, strings.TrimRight(t.Flags.FlagUsages(), " \n"))
	}
	return b.String()
}

// Topical are the flags of one topic.
type Topical struct {
	Title string
	Flags *pflag.FlagSet
}

// other is the title of flags without a topic.
const other = "Other"

// Topics sorts flags by topic, in the order of their definition, those without one
// last. Hidden flags are left out.
func Topics(fs *pflag.FlagSet) []Topical {
	var list []Topical
	add := func(title string, f *pflag.Flag) {
		i := slices.IndexFunc(list, func(t Topical) bool { return t.Title == title })
		if i < 0 {
			i = len(list)
			list = append(list, Topical{title, pflag.NewFlagSet(title, pflag.ContinueOnError)})
			list[i].Flags.SortFlags = false
		}
		list[i].Flags.AddFlag(f)
	}
	fs.VisitAll(func(f *pflag.Flag) {
		if topic := f.Annotations[topicKey]; !f.Hidden && len(topic) == 1 {
			add(topic[0], f)
		}
	})
	fs.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Annotations[topicKey] == nil {
			add(other, f)
		}
	})
	return list
}
