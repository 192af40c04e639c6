package trial

import (
	"errors"
	"regexp"
	"strings"

	"github.com/proctor-run/proctor/internal/pyvalue"
	"github.com/proctor-run/proctor/internal/schema"
)

// The words of the rules for host names (Harbor job format, section 1.9).
var (
	errHostEmpty    = errors.New("allowed_hosts entries must be non-empty hostnames.")
	errHostURL      = errors.New("allowed_hosts entries must be hostnames, not URLs, ports, or paths.")
	errHostWildcard = errors.New("allowed_hosts wildcard entries must use a leading '*.' prefix.")
	errHostLabel    = errors.New("allowed_hosts entries must be valid hostnames or leading wildcard host patterns containing only letters, digits, hyphens, and dots.")
)

var hostLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// decodeHosts validates and normalises a list of host names.
func decodeHosts(c *schema.Cursor, v pyvalue.Value) ([]string, bool) {
	return schema.After(schema.List(schema.Str), func(hosts []string) ([]string, error) {
		for i, h := range hosts {
			host, err := normalizeHost(h)
			if err != nil {
				return nil, err
			}
			hosts[i] = host
		}
		return hosts, nil
	})(c, v)
}

func normalizeHost(h string) (string, error) {
	host := strings.TrimRight(strings.ToLower(strings.TrimSpace(h)), ".")
	switch {
	case host == "":
		return "", errHostEmpty
	case strings.ContainsAny(host, "/:"):
		return "", errHostURL
	}
	name := host
	if strings.Contains(host, "*") {
		suffix, ok := strings.CutPrefix(host, "*.")
		if !ok || strings.Contains(suffix, "*") {
			return "", errHostWildcard
		}
		name = suffix
	}
	for label := range strings.SplitSeq(name, ".") {
		if !hostLabel.MatchString(label) {
			return "", errHostLabel
		}
	}
	return host, nil
}
