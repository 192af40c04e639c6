package view

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/jobdir"
)

// TestNetwork: a trial's page sums up what was asked of the network, what was denied first.
func TestNetwork(t *testing.T) {
	t.Parallel()
	dir := jobs(t)
	trial := filepath.Join(dir, "mixed-oracle", "no-reward__Ct8qpvf")
	var log strings.Builder
	for range 3 {
		log.WriteString(`{"time":"2026-01-02T03:04:05Z","host":"pypi.org","port":443,"allowed":true,"reason":"in allowed_hosts","bytes_up":100,"bytes_down":2048}` + "\n")
	}
	log.WriteString(`{"host":"<script>fetch('/beacon')</script>","port":80,"allowed":false,"reason":"not in allowed_hosts","bytes_up":-5}` + "\nno JSON\n")
	log.WriteString(`{"time":"2026-01-02T03:04:05Z","host":"","port":0,"allowed":false,"reason":"7 more lines were dropped: the log is full"}`)
	jobtest.Write(t, filepath.Join(trial, jobdir.EgressLog), []byte(log.String()))
	server := serve(t, Options{Dirs: []string{dir}})
	page, _ := get(t, server.URL+"/jobs/0/mixed-oracle/trials/no-reward__Ct8qpvf", http.StatusOK)
	for _, want := range []string{
		"1 denied request, 3 allowed", `<td>pypi.org:443</td><td>allowed <span class="quiet">in allowed_hosts</span></td><td class="num">3</td><td class="num spare">300 B</td><td class="num spare">6.0 KiB</td>`,
		`<td>&lt;script&gt;`, "7 more lines were dropped", `href="/jobs/0/mixed-oracle/trials/no-reward__Ct8qpvf/files/egress.jsonl"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in %s", want, page)
		}
	}
	if strings.Index(page, "not in allowed_hosts") > strings.Index(page, "pypi.org") {
		t.Error("what was denied is not the first")
	}
	log.Reset()
	for i := range mostHosts + 5 {
		fmt.Fprintf(&log, `{"host":"h%d","port":1,"allowed":false}`+"\n", i)
	}
	jobtest.Write(t, filepath.Join(trial, jobdir.EgressLog), []byte(log.String()))
	if page, _ = get(t, server.URL+"/jobs/0/mixed-oracle/trials/no-reward__Ct8qpvf", http.StatusOK); !strings.Contains(page, "5 more hosts in the file") {
		t.Error("it is not said that there are more hosts")
	}
}

// TestSettings: pages of jobs and of trials show what their configurations set.
func TestSettings(t *testing.T) {
	t.Parallel()
	dir := jobs(t)
	config := filepath.Join(dir, "mixed-oracle", "no-reward__Ct8qpvf", "config.json")
	jobtest.Write(t, config, []byte(`{"agent":{"name":"<script>x","model_name":null,"env":{}},"list":[{"a":1},"two"],"on":false,"long":"`+strings.Repeat("x", 2*longestSetting)+`"}`))
	server := serve(t, Options{Dirs: []string{dir}})
	page, _ := get(t, server.URL+"/jobs/0/mixed-oracle/trials/no-reward__Ct8qpvf", http.StatusOK)
	for _, want := range []string{
		"5 settings", "<dt>agent.name</dt><dd>&lt;script&gt;x</dd>", "<dt>list[0].a</dt><dd>1</dd>", "<dt>list[1]</dt><dd>two</dd>", "<dt>on</dt><dd>false</dd>", "x … 1.0 KiB more</dd>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(page, "model_name") {
		t.Error("what sets nothing is shown")
	}
	if page, _ = get(t, server.URL+"/jobs/0/mixed-oracle", http.StatusOK); !strings.Contains(page, "<dt>agents[0].name</dt><dd>oracle</dd>") {
		t.Error("the job's configuration is not shown")
	}
	var rows []noteRow
	many := "[" + strings.Repeat("1,", 2*mostSettings) + "1]"
	jobtest.Write(t, config, []byte(many))
	if rows = settingsOf(filepath.Dir(config)); len(rows) != mostSettings {
		t.Errorf("%d settings", len(rows))
	}
}
