package compose_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/sandbox"
)

// refusals are keys that are not carried out, one of each kind.
func TestRefusesKeys(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, key string }{
		{"services:\n  main:\n    init: true\n    annotations: {a: b}", "docker-compose.yaml:4: key services.main.annotations: not carried out"},
		{"services:\n  main:\n    post_start: [{command: 'true'}]", ":3: key services.main.post_start: hooks are not run"},
		{"services:\n  main: {}\n  gpu:\n    provider: {type: x}", ":4: key services.gpu.provider: other programs are not run"},
		{"services:\n  main:\n    pid: host", ":3: key services.main.pid: service main cannot share"},
		{"services:\n  main:\n    mac_address: 02:42:ac:11:65:43", ":3: key services.main.mac_address needs an engine with API 1.44"},
		{"services:\n  main:\n    use_api_socket: true", ":3: key services.main.use_api_socket: mount the socket instead"},
		{"services:\n  main:\n    volumes:\n      - {type: image, source: x, target: /x, image: {subpath: y}}", "key services.main.volumes.[].image: images are not mounted"},
		{"services:\n  main:\n    volumes:\n      - {type: volume, source: d, target: /x, volume: {subpath: y}}\nvolumes: {d: {}}", "key services.main.volumes.[].volume.subpath"},
		{"services:\n  main: {}\n  side:\n    build:\n      context: .\n      secrets: [s]\nsecrets: {s: {file: x}}", "key services.side.build.secrets: builds get no secrets"},
		{"services:\n  main: {secrets: [s]}\nsecrets:\n  s:\n    external: true", ":5: key secrets.s.external: for swarms only"},
		{"services:\n  main: {networks: {default: {interface_name: x}}}", "key services.main.networks.default.interface_name"},
	} {
		_, b := newProjectEngine(t)
		_, err := b.Create(t.Context(), specOf(t, map[string]string{"docker-compose.yaml": tt.text + "\n"}))
		if !errors.Is(err, sandbox.ErrUnsupported) || !strings.Contains(err.Error(), tt.key) {
			t.Errorf("%q: got error %v, want %q", tt.text, err, tt.key)
		}
	}
}

// TestBadFiles gives files that no project can be made of: one error
// names the file, or the key.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"no YAML":              {"services: [", "docker-compose.yaml"},
		"a list":               {"- a\n", "must be a mapping"},
		"an unknown key":       {"services: {main: {imago: x}}", "docker-compose.yaml"},
		"a wrong type":         {"services: {main: {ports: 5}}", "docker-compose.yaml"},
		"a required variable":  {"services: {main: {hostname: '${NOT_SET:?is needed}'}}", "is needed"},
		"a circle":             {"services: {main: {depends_on: [a]}, a: {image: x, depends_on: [main]}}", "cycle"},
		"an unknown service":   {"services: {main: {depends_on: [a]}}", `undefined service "a"`},
		"an unknown volume":    {"services: {main: {volumes: ['data:/x']}}", "undefined volume data"},
		"no env_file":          {"services: {main: {env_file: none}}", "none"},
		"an endless env_file":  {"services: {main: {env_file: /dev/zero}}", "not a regular file"},
		"an endless label":     {"services: {main: {label_file: /dev/zero}}", "not a regular file"},
		"an endless extends":   {"services: {main: {extends: {file: /dev/zero, service: main}}}", "not a regular file"},
		"an endless include":   {"include: [/dev/zero]\nservices: {main: {}}", "not a regular file"},
		"an include in a file": {"include: [other.yaml]\nservices: {main: {}}", "not a regular file"},
		"a disabled main":      {"services: {main: {profiles: [x]}, a: {image: x}}", "disabled"},
		"aliases of aliases":   {bomb(), ""},
		"a bad platform":       {"services: {main: {platform: '/'}}", "platform"},
		"a bad address":        {"services: {main: {dns: nowhere}}", `"nowhere" is not an address`},
		"a remote build":       {"services: {main: {}, a: {build: 'https://example.org/x.git'}}", "only directories are built from"},
		"a missing Dockerfile": {"services: {main: {}, a: {build: .}}", "Dockerfile"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, b := newProjectEngine(t)
			spec := specOf(t, map[string]string{"docker-compose.yaml": tt.text + "\n", "other.yaml": "include: [/dev/zero]\n"})
			_, err := b.Create(t.Context(), spec)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
			if left := e.Left(); len(left) > 0 {
				t.Errorf("left are %q", left)
			}
		})
	}
}

// bomb is a document that is small, and very large when its aliases are
// followed.
func bomb() string {
	var b strings.Builder
	b.WriteString("x-a: &a [x, x, x, x, x, x, x, x, x, x]\n")
	for c := 'b'; c <= 'k'; c++ {
		fmt.Fprintf(&b, "x-%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+", ", 10), ", "))
	}
	b.WriteString("services: {main: {command: *k}}\n")
	return b.String()
}

func TestIncludesAndExtends(t *testing.T) {
	t.Parallel()
	_, b := newProjectEngine(t)
	spec := specOf(t, map[string]string{
		"docker-compose.yaml": "include:\n  - {path: sub/more.yaml, project_directory: sub}\nservices:\n  main: {extends: {file: base.yaml, service: b}}\n",
		"base.yaml":           "services: {b: {hostname: from-base}}\n",
		"sub/more.yaml":       "services: {more: {image: img, hostname: '${NAME}'}}\n",
		"sub/.env":            "NAME=from-include\n",
	})
	text, err := b.JSON(t.Context(), spec)
	if err != nil || !strings.Contains(string(text), "from-base") || !strings.Contains(string(text), "from-include") {
		t.Errorf("%v: %s", err, text)
	}
}

// A file that fails says what would give its variables a value.
func TestHints(t *testing.T) {
	t.Parallel()
	const text = "services:\n  main:\n    deploy: {resources: {limits: {cpus: '${CPUS}', memory: '${MEMORY}'}}}\n    hostname: ${OTHER}\n"
	hints := map[string]string{"CPUS": "say how many", "MEMORY": "say how much", "UNUSED": "x"}
	for _, tt := range []struct {
		env  []string
		want string // at the end of the error; empty for none
	}{
		{nil, "; variable CPUS is not set: say how many; variable MEMORY is not set: say how much"},
		{[]string{"MEMORY=1G"}, "; variable CPUS is not set: say how many"},
		{[]string{"MEMORY=1G", "CPUS=1"}, ""},
	} {
		_, b := newProjectEngine(t)
		spec := specOf(t, map[string]string{"docker-compose.yaml": text})
		spec.Compose.Env, spec.Compose.Hints = tt.env, hints
		_, err := b.JSON(t.Context(), spec)
		switch {
		case tt.want == "" && err == nil:
		case tt.want == "" || err == nil || !strings.HasSuffix(err.Error(), tt.want) || strings.Count(err.Error(), "; variable") != strings.Count(tt.want, "; variable"):
			t.Errorf("with %q the error is %v, want its end to be %q", tt.env, err, tt.want)
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	_, b := newProjectEngine(t)
	spec := specOf(t, map[string]string{"inside/x": "", "docker-compose.yaml": `
version: "3"
services:
  main:
    privileged: true
    network_mode: host
    volumes: ['./inside:/a', '/etc:/b', '/var/run/docker.sock:/c:ro', './out:/d']
    ports: ['8080:80']
  side:
    image: img
    pid: host
    devices: [/dev/null:/dev/x]
    cap_add: [ALL]
    environment: [HOST_VAR, "GIVEN=${GIVEN_VAR}"]
    deploy: {labels: {a: b}, placement: {constraints: [x]}}
volumes: {}
`})
	if err := os.Symlink("/etc", filepath.Join(spec.Compose.Dir, "out")); err != nil {
		t.Fatal(err)
	}
	spec.Mounts = []sandbox.Mount{{Source: t.TempDir(), Target: "/logs/agent"}}
	var got []string
	spec.Warn = func(m string) { got = append(got, strings.ReplaceAll(m, spec.Compose.Dir, "DIR")) }
	want := []string{
		"DIR/docker-compose.yaml:15: key services.side.deploy.labels has no effect",
		"DIR/docker-compose.yaml:15: key services.side.deploy.placement has no effect",
		"compose service main is privileged: it can take over this machine",
		"compose service main is reachable at this machine's port 8080",
		"compose service main mounts a container engine's socket, /var/run/docker.sock: it can take over this machine",
		"compose service main mounts, writable, /etc of this machine at /b",
		"compose service main mounts, writable, DIR/out of this machine at /d",
		"compose service main shares the host's network",
		"compose service side has added capabilities: ALL",
		"compose service side shares the host's processes",
		"compose service side uses the host's device /dev/null",
		"the compose files use variables of the environment that proctor runs in: HOST_VAR",
	}
	spec.Compose.Env = []string{"GIVEN_VAR=x"}
	up(t, b, spec)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("warnings (-want +got):\n%s", d)
	}
}

// TestTranslates looks at what the engine is told for the keys of a
// service.
func TestTranslates(t *testing.T) {
	t.Parallel()
	e, b := newProjectEngine(t)
	spec := specOf(t, map[string]string{"docker-compose.yaml": `
services:
  main:
    command: sleep 5
    entrypoint: []
    user: "1:2"
    working_dir: /w
    hostname: h
    domainname: d
    environment: {A: "1", B: }
    extra_hosts: ["one:10.0.0.1"]
    cap_drop: [NET_RAW]
    ulimits: {nofile: {soft: 10, hard: 20}, nproc: 5}
    shm_size: 1m
    sysctls: {net.core.somaxconn: 1}
    security_opt: ["seccomp:unconfined"]
    restart: on-failure:3
    stop_signal: SIGINT
    stop_grace_period: 1500ms
    init: true
    read_only: true
    tmpfs: [/run, "/t:size=1m"]
    dns: 10.0.0.2
    pids_limit: 7
    cpus: 0.1
    cpu_shares: 5
    mem_reservation: 1m
    ipc: service:side
    group_add: [video]
    expose: ["70-71", "80/udp"]
    ports: ["127.0.0.1:90:91"]
    logging: {driver: none}
    labels: {mine: "yes"}
    gpus: [{count: 1, capabilities: [gpu]}]
    healthcheck: {test: "true", interval: 1s, timeout: 2s, start_period: 3s, retries: 4}
    networks: {default: {aliases: [x], ipv4_address: 10.9.0.5, priority: 5}, back: {}}
    volumes: [{type: tmpfs, target: /m, tmpfs: {size: 1024}}, {type: bind, source: /srv, target: /s, bind: {create_host_path: false, propagation: rshared}}]
  side:
    image: img
    healthcheck: {disable: true}
    deploy: {replicas: 2, restart_policy: {condition: on-failure, max_attempts: 2}, resources: {limits: {cpus: "0.3", memory: 5m, pids: 9}, reservations: {memory: 2m}}}
networks:
  default: {ipam: {config: [{subnet: 10.9.0.0/24, gateway: 10.9.0.1}]}}
  back: {driver: macvlan, internal: true}
`})
	spec.Compose.Env = []string{"B=passed on"}
	sb := up(t, b, spec)
	name := spec.Compose.Project
	for container, fields := range map[string]map[string]string{
		name + "-main-1": {
			"Cmd": `["sleep","5"]`, "Entrypoint": `[]`, "User": `"1:2"`, "WorkingDir": `"/w"`, "Hostname": `"h"`, "Domainname": `"d"`,
			"Env": `["A=1","B=passed on"]`, "StopSignal": `"SIGINT"`, "StopTimeout": `2`, "Labels.mine": `"yes"`,
			"ExposedPorts":   `{"70/tcp":{},"71/tcp":{},"80/udp":{},"91/tcp":{}}`,
			"Healthcheck":    `{"Interval":1000000000,"Retries":4,"StartPeriod":3000000000,"Test":["CMD-SHELL","true"],"Timeout":2000000000}`,
			"HostConfig.Dns": `["10.0.0.2"]`, "HostConfig.ExtraHosts": `["one:10.0.0.1"]`, "HostConfig.CapDrop": `["CAP_NET_RAW"]`,
			"HostConfig.Ulimits": `[{"Hard":20,"Name":"nofile","Soft":10},{"Hard":5,"Name":"nproc","Soft":5}]`,
			"HostConfig.ShmSize": `1048576`, "HostConfig.Sysctls": `{"net.core.somaxconn":"1"}`, "HostConfig.SecurityOpt": `["seccomp=unconfined"]`,
			"HostConfig.RestartPolicy": `{"MaximumRetryCount":3,"Name":"on-failure"}`, "HostConfig.Init": `true`, "HostConfig.ReadonlyRootfs": `true`,
			"HostConfig.Tmpfs": `{"/run":"","/t":"size=1m"}`, "HostConfig.PidsLimit": `7`, "HostConfig.NanoCpus": `100000000`, "HostConfig.CpuShares": `5`,
			"HostConfig.MemoryReservation": `1048576`, "HostConfig.IpcMode": `"container:c1"`, "HostConfig.GroupAdd": `["video"]`,
			"HostConfig.PortBindings": `{"91/tcp":[{"HostIp":"127.0.0.1","HostPort":"90"}]}`, "HostConfig.LogConfig.Type": `"none"`,
			"HostConfig.DeviceRequests": `[{"Capabilities":[["gpu"]],"Count":1,"DeviceIDs":null,"Driver":"","Options":null}]`,
			"HostConfig.NetworkMode":    `"` + name + `_default"`,
			"HostConfig.Mounts":         `[{"Target":"/m","TmpfsOptions":{"SizeBytes":1024},"Type":"tmpfs"},{"BindOptions":{"Propagation":"rshared"},"Source":"/srv","Target":"/s","Type":"bind"}]`,
			"NetworkingConfig.EndpointsConfig." + name + "_default.Aliases":    `["` + name + `-main-1","main","x"]`,
			"NetworkingConfig.EndpointsConfig." + name + "_default.IPAMConfig": `{"IPv4Address":"10.9.0.5"}`,
		},
		name + "-side-2": {
			"Healthcheck": `{"Test":["NONE"]}`, "HostConfig.RestartPolicy": `{"MaximumRetryCount":2,"Name":"on-failure"}`,
			"HostConfig.NanoCpus": `300000000`, "HostConfig.Memory": `5242880`, "HostConfig.PidsLimit": `9`, "HostConfig.MemoryReservation": `2097152`,
			"Cmd": `null`, "Entrypoint": `null`,
		},
	} {
		body := e.Created(t, container)
		for field, want := range fields {
			if got := member(t, body, field); got != want {
				t.Errorf("%s: %s is %s, want %s", container, field, got, want)
			}
		}
	}
	if len(e.Subnets) != 1 || !e.Subnets["10.9.0.0/24"] {
		t.Errorf("subnets %v, want those of the file", e.Subnets)
	}
	if err := sb.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestProcessesAreBounded: a service whose file does not bound its processes has the
// sandbox's bound.
func TestProcessesAreBounded(t *testing.T) {
	t.Parallel()
	e, b := newProjectEngine(t)
	spec := specOf(t, map[string]string{"docker-compose.yaml": `
services:
  main: {}
  free: {image: img, pids_limit: -1}
  small: {image: img, deploy: {resources: {limits: {pids: 9}}}}
`})
	spec.Resources.PIDs = 123
	sb, err := b.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	for service, want := range map[string]string{"main": "123", "free": "-1", "small": "9"} {
		if got := member(t, e.Created(t, spec.Compose.Project+"-"+service+"-1"), "HostConfig.PidsLimit"); got != want {
			t.Errorf("service %s may have %s processes, want %s", service, got, want)
		}
	}
	if err := sb.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
}

// member is the JSON of a field, found by a path of names.
func member(t testing.TB, body map[string]any, path string) string {
	t.Helper()
	var v any = body
	for name := range strings.SplitSeq(path, ".") {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func FuzzFile(f *testing.F) {
	f.Add("services: {main: {environment: [A], volumes: ['/a:/b']}}")
	f.Add(fakeProject)
	f.Add(bomb())
	dir := f.TempDir()
	api, err := client.New(client.WithHost("unix:///nowhere"))
	if err != nil {
		f.Fatal(err)
	}
	b := engineOf(f, api)
	f.Fuzz(func(t *testing.T, text string) {
		file := filepath.Join(dir, "docker-compose.yaml")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, _ = b.JSON(t.Context(), sandbox.Spec{
			Image: sandbox.Image{Ref: "img"}, Compose: &sandbox.Compose{Project: "p", Dir: dir, Files: []string{file}},
		})
	})
}
