package sandbox

import "strings"

// MergeEnv joins lists of KEY=VALUE. The last value of a key wins, at the place
// where the key stood first.
func MergeEnv(lists ...[]string) []string {
	var merged []string
	at := map[string]int{}
	for _, list := range lists {
		for _, entry := range list {
			key, _, _ := strings.Cut(entry, "=")
			if i, seen := at[key]; seen {
				merged[i] = entry
				continue
			}
			at[key] = len(merged)
			merged = append(merged, entry)
		}
	}
	return merged
}
