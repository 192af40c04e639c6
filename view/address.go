package view

import (
	"fmt"
	"net/url"
	"strings"
)

// longestValue bounds the value of a parameter, in bytes: no path is longer, and what is
// longer by much is in no request.
const longestValue = 4096

// query is an address with the parameters, name and value in turn, that have a value which
// a request can have.
func query(path string, parameters ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(parameters); i += 2 {
		if n := len(parameters[i+1]); n > 0 && n <= longestValue {
			q.Set(parameters[i], parameters[i+1])
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// The kinds of addresses, as parts of them say.
const (
	kindList       = "list"
	kindJob        = "job"
	kindTrial      = "trial"
	kindTrajectory = "trajectory"
	kindEpisode    = "episode"
	kindRecording  = "recording"
	kindCompare    = "compare"
	kindFile       = "files"
	kindRaw        = "raw"
	kindStatic     = "static"
)

// kindOf is the kind of an address, empty for one that is not known.
func kindOf(parts []string) string {
	switch n := len(parts); {
	case parts[0] == "":
		return kindList
	case parts[0] == kindStatic && n == 2:
		return kindStatic
	case parts[0] == kindCompare && n == 1:
		return kindCompare
	case parts[0] == "trajectories" && n > 2:
		return parts[2]
	case parts[0] != "jobs" || n < 3:
		return ""
	case n == 3:
		return kindJob
	case n == 5:
		return kindTrial
	case n > 5:
		return parts[5]
	}
	return ""
}

// split are an address and the names that its path has.
func split(address string) (u *url.URL, parts []string, err error) {
	if u, err = url.Parse(address); err != nil {
		return nil, nil, fmt.Errorf("reading an address: %w", err)
	}
	parts = strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")
	for i, p := range parts {
		if parts[i], err = url.PathUnescape(p); err != nil {
			return nil, nil, fmt.Errorf("reading an address: %w", err)
		}
	}
	return u, parts, nil
}
