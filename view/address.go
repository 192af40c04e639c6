package view

import "net/url"

// query is an address with the parameters, name and value in turn, that have a value.
func query(path string, parameters ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(parameters); i += 2 {
		if parameters[i+1] != "" {
			q.Set(parameters[i], parameters[i+1])
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}
