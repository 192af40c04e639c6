package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/view"
)

// viewAddress is where pages are by default; another port is taken where that one is.
const viewAddress = "127.0.0.1:7676"

func newView(env *Env) *cobra.Command {
	address, export := viewAddress, ""
	cmd := &cobra.Command{
		Use:   "view [DIR...]",
		Short: "Look at jobs, trials and trajectories in a browser",
		Long: `view serves pages on which jobs, their trials, what agents did and what was
printed can be looked at, and prints where they are. DIR is a directory of jobs,
proctor's or Harbor's, one job, one trial or a trajectory file; without any it is
"jobs". A job that runs shows itself anew.

The pages are on this machine's loopback interface and load nothing from
elsewhere. --listen puts them on another address; then the address that is printed
has a token, without which nothing is shown. Whoever has it sees everything in
the directories. It only reads, and an interrupt ends it.

--export writes the same pages as files into a new directory and ends: for a disk, an
archive or any web server, to be published beside a score. With the name of a file that
ends with .html, trials and trajectories become one page that needs nothing beside it.
Secrets of the jobs and of this environment are taken out; of long files the beginning
and the end are there.`,
		Example: `  proctor view
  proctor view jobs /data/harbor-jobs
  proctor view --listen 0.0.0.0:7676 jobs
  proctor view --export pages jobs/2026-06-09__10-00-00
  proctor view --export trial.html jobs/2026-06-09__10-00-00/hello-world__AbCdEfG`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"jobs"}
			}
			if export != "" && cmd.Flags().Changed("listen") {
				return usageErrorf("--export writes files and --listen serves pages: choose one")
			}
			ctx, stop := interruptible(cmd.Context(), env)
			defer stop()
			if export != "" {
				return exportView(ctx, env, args, export)
			}
			return serveView(ctx, env, args, address, cmd.Flags().Changed("listen"))
		},
	}
	cmd.Flags().StringVar(&address, "listen", address, "serve the pages at this `address`, as HOST:PORT")
	cmd.Flags().StringVar(&export, "export", "", "write the pages as files into this new directory or, named *.html, as one page")
	return cmd
}

// exportView writes the pages as files and prints where to begin.
func exportView(ctx context.Context, env *Env, dirs []string, to string) error {
	s, err := newViewServer(env, view.Options{Dirs: dirs})
	if err != nil {
		return err
	}
	const some = 500 // pages between two lines
	write, first := s.Export, filepath.Join(to, "index.html")
	if strings.EqualFold(filepath.Ext(to), ".html") {
		write, first = s.ExportPage, to
	}
	done, err := write(ctx, to, view.ExportOptions{Environ: env.Environ, Progress: func(e view.Exported) {
		if e.Pages > 0 && e.Pages%some == 0 {
			_, _ = fmt.Fprintf(env.Stderr, "%d pages\n", e.Pages)
		}
	}})
	if _, ok := errors.AsType[*view.NotEmptyError](err); ok {
		return withHint(usageErrorf("--export: %w", err), "name a directory that is not there yet")
	}
	if _, ok := errors.AsType[*view.ManyPagesError](err); ok {
		return withHint(usageErrorf("--export: %w", err), "name a directory for its pages, or a trial")
	}
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(env.Stdout, "%s\n%s, %s\n", first, console.Count(done.Pages, "page"), console.Bytes(done.Bytes))
	return nil
}

func newViewServer(env *Env, o view.Options) (*view.Server, error) {
	o.Zone, o.Now = env.Now().Location(), env.Now
	s, err := view.New(o)
	if err != nil {
		return nil, withHint(usageErrorf("%w", err), "name the directory that holds the jobs: proctor view DIR")
	}
	return s, nil
}

func serveView(ctx context.Context, env *Env, dirs []string, address string, asked bool) error {
	o := view.Options{Dirs: dirs}
	l, err := listenView(ctx, address, asked)
	if err != nil {
		return usageErrorf("--listen: %w", err)
	}
	defer func() { _ = l.Close() }()
	to := &url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/"}
	if tcp, ok := l.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		o.Token = rand.Text()
		to.RawQuery = url.Values{"token": {o.Token}}.Encode()
	}
	s, err := newViewServer(env, o)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(env.Stdout, "%s\n", to)
	if err := s.Serve(ctx, l); ctx.Err() == nil {
		return err
	}
	return nil // an interrupt is how it ends
}

// listenView listens at the address, or at any port of it where nobody asked for that one
// and it is taken.
func listenView(ctx context.Context, address string, asked bool) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil && !asked && ctx.Err() == nil { // systems name the reason differently
		host, _, _ := net.SplitHostPort(address)
		l, err = new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	return l, nil
}
