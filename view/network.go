package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net"
	"slices"
	"strconv"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/jobdir"
)

const (
	// mostEgress is how much is read of what the proxy of an allow list logged, in bytes.
	mostEgress = 16 << 20
	// mostHosts is how many rows the page of a trial has for them.
	mostHosts = 50
)

// network is what a trial's sandboxes asked the proxy of an allow list for.
type network struct {
	Href            string // of the file
	Allowed, Denied int
	Hosts           []hostRow
	More            int // hosts that are not listed
	Notes           []string
}

// hostRow has the requests to a port of a host that were decided alike.
type hostRow struct {
	Host     string
	Allowed  bool
	Requests int
	Reason   string // of the last one
	Up, Down string
	up, down int64
}

// egressLine is a line of the file. One without a host is a note.
type egressLine struct {
	Host    string `json:"host"`
	Port    uint16 `json:"port"`
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason"`
	Up      int64  `json:"bytes_up"`
	Down    int64  `json:"bytes_down"`
}

// networkOf sums the file of a trial up; nil without one.
func networkOf(dir, href string) *network {
	data, err := bounded.ReadIn(dir, jobdir.EgressLog, mostEgress)
	if err != nil {
		return nil // it is among the files, where there is one
	}
	n := &network{Href: href + "/files/" + jobdir.EgressLog}
	type key struct {
		host    string
		allowed bool
	}
	rows := map[key]*hostRow{}
	for line := range bytes.Lines(data) {
		var l egressLine
		if json.Unmarshal(line, &l) != nil {
			continue
		}
		if l.Host == "" {
			n.Notes = append(n.Notes, prose(l.Reason))
			continue
		}
		k := key{net.JoinHostPort(l.Host, strconv.Itoa(int(l.Port))), l.Allowed}
		row := rows[k]
		if row == nil {
			row = &hostRow{Host: label(k.host), Allowed: l.Allowed}
			rows[k] = row
		}
		row.Reason = label(l.Reason)
		row.Requests++
		row.up += max(l.Up, 0)
		row.down += max(l.Down, 0)
		if l.Allowed {
			n.Allowed++
		} else {
			n.Denied++
		}
	}
	for _, row := range rows {
		row.Up, row.Down = size(row.up), size(row.down)
		n.Hosts = append(n.Hosts, *row)
	}
	n.order()
	return n
}

// order puts what was denied first, of that what was asked for most.
func (n *network) order() {
	slices.SortFunc(n.Hosts, func(a, b hostRow) int {
		if a.Allowed != b.Allowed {
			if a.Allowed {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Host, b.Host))
	})
	n.More = max(len(n.Hosts)-mostHosts, 0)
	n.Hosts = n.Hosts[:min(len(n.Hosts), mostHosts)]
	n.Notes = n.Notes[:min(len(n.Notes), mostHosts)]
}
