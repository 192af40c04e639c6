package flags

import (
	"fmt"
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

// TopicOf returns the title of a flag, empty where it has none.
func TopicOf(f *pflag.Flag) string {
	if topic := f.Annotations[topicKey]; len(topic) == 1 {
		return topic[0]
	}
	return ""
}

// ByTopic has help list the flags of a command under their topics, in the order of
// their definition.
func ByTopic(cmd *cobra.Command) {
	cmd.SetUsageFunc(func(c *cobra.Command) error {
		_, err := fmt.Fprint(c.OutOrStderr(), usageByTopic(c))
		return err
	})
}

func usageByTopic(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s\n", c.UseLine())
	if c.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", c.Example)
	}
	var titles []string
	sets := map[string]*pflag.FlagSet{}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		title := TopicOf(f)
		if title == "" {
			title = "Other"
		}
		if sets[title] == nil {
			sets[title] = pflag.NewFlagSet(title, pflag.ContinueOnError)
			sets[title].SortFlags = false
			titles = append(titles, title)
		}
		sets[title].AddFlag(f)
	})
	for _, title := range titles {
		if sets[title].HasAvailableFlags() {
			fmt.Fprintf(&b, "\n%s flags:\n%s\n", title, strings.TrimRight(sets[title].FlagUsages(), " \n"))
		}
	}
	return b.String()
}
