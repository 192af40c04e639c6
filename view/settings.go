package view

import (
	"strconv"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/value"
)

const (
	// mostSettings is how many settings a page shows, and longestSetting how much of one,
	// in bytes.
	mostSettings   = 300
	longestSetting = 1 << 10
)

// settingsOf are what the configuration in the directory of a job or a trial sets, each by
// its place there: agents[0].name. What is null or empty sets nothing.
func settingsOf(dir string) []noteRow {
	data, err := jobdir.ReadJobFile(dir, scan.ConfigFile)
	if err != nil {
		return nil
	}
	v, err := value.Decode(data)
	if err != nil {
		return nil
	}
	var rows []noteRow
	addSettings(&rows, "", v)
	return rows
}

func addSettings(rows *[]noteRow, place string, v value.Value) {
	if len(*rows) >= mostSettings {
		return
	}
	switch v := v.(type) {
	case value.Null:
	case *value.Object:
		for name, member := range v.All() {
			at := place + "." + name
			if place == "" {
				at = name
			}
			addSettings(rows, at, member)
		}
	case value.List:
		for i, element := range v {
			addSettings(rows, place+"["+strconv.Itoa(i)+"]", element)
		}
	default:
		text := string(value.AppendDumps(nil, v, value.DumpsOptions{Unicode: true}))
		if s, ok := v.(value.Str); ok {
			text = string(s)
		}
		*rows = append(*rows, noteRow{label(place), shortened(plain(text), longestSetting)})
	}
}
