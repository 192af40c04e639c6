package need

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// How long an engine may be silent while it pulls an image: a registry that
// cannot be reached must not hold up the tests.
const pullSilence = time.Minute

// Image skips unless a Docker Engine answers and has the image, or can pull it
// from its registry, and returns the engine's address.
func Image(t testing.TB, name string) string {
	t.Helper()
	host := Docker(t)
	if err := EngineImage(host, name); err != nil {
		missing(t, "image", fmt.Sprintf("needs the image %s in the Docker Engine: %v", name, err))
	}
	return host
}

// EngineImage returns nil when the engine at host ("unix:///…", "tcp://…") has
// the image or has pulled it. A process asks once for each image.
func EngineImage(host, name string) error {
	ask, _ := asked.LoadOrStore([2]string{host, name}, sync.OnceValue(func() error { return engineImage(host, name) }))
	return ask.(func() error)()
}

var asked sync.Map // of [2]string to func() error

func engineImage(host, name string) error {
	e, err := newEngine(host)
	if err != nil {
		return err
	}
	defer e.client.CloseIdleConnections()
	there, err := e.has(name)
	if there || err != nil {
		return err
	}
	if err := e.pull(name); err != nil {
		return fmt.Errorf("it is not there, and pulling it fails: %w", err)
	}
	return nil
}

// engine speaks as much of the Engine API as the question takes.
type engine struct {
	base   string
	client *http.Client
}

func newEngine(host string) (*engine, error) {
	network, address, ok := strings.Cut(host, "://")
	switch {
	case ok && network == "unix":
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", address)
		}
		return &engine{"http://engine", &http.Client{Transport: &http.Transport{DialContext: dial}}}, nil
	case ok && (network == "tcp" || network == "http"):
		return &engine{"http://" + address, &http.Client{Transport: &http.Transport{}}}, nil
	}
	return nil, fmt.Errorf("tests cannot ask an engine at %q for its images", host)
}

func (e *engine) has(name string) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), pullSilence)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.base+"/images/"+name+"/json", nil)
	if err != nil {
		return false, fmt.Errorf("asking the engine for image %q: %w", name, err)
	}
	res, err := e.client.Do(req)
	if err != nil {
		return false, err
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK, nil
}

// pull waits for a pull to end. It gives up when the engine says nothing for a
// while.
func (e *engine) pull(name string) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	silence := time.AfterFunc(pullSilence, func() { cancel(errors.New("the registry does not answer")) })
	defer silence.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.base+"/images/create?fromImage="+url.QueryEscape(name), nil)
	if err != nil {
		return fmt.Errorf("asking the engine to pull %q: %w", name, err)
	}
	res, err := e.client.Do(req)
	if err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
		return fmt.Errorf("%s: %s", res.Status, strings.TrimSpace(string(text)))
	}
	for lines := json.NewDecoder(res.Body); ; {
		var line struct{ Error string }
		if err := lines.Decode(&line); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		if line.Error != "" {
			return errors.New(line.Error)
		}
		silence.Reset(pullSilence)
	}
}
