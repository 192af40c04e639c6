package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"image"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/proctor-run/proctor/agent/mcp"
	"github.com/proctor-run/proctor/cube"
)

// TestWaits: what has to do with the task waits until it is there.
func TestWaits(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			p := newPlayer()
			obs := cube.Observe(cube.Text("Go."))
			firsts := make(chan *cube.Observation, 1)
			go func() {
				first, err := p.First(t.Context())
				if err != nil {
					t.Error(err)
				}
				firsts <- first
			}()
			connected := make(chan *sdk.ClientSession, 1)
			go func() {
				s, err := w.tryDial(t, p, nil)
				if err != nil {
					t.Error(err)
				}
				connected <- s
			}()
			taken := make(chan []cube.Action, 1)
			go func() {
				actions, err := p.Act(t.Context(), obs, offered())
				if err != nil {
					t.Error(err)
				}
				taken <- actions
			}()
			if first := <-firsts; first != obs {
				t.Errorf("first %v", first)
			}
			p.Leave(nil)
			if s := <-connected; s == nil || s.InitializeResult().Instructions != "Go." {
				t.Error("the task is not told")
			}
			if actions := <-taken; actions != nil {
				t.Errorf("actions %v", actions)
			}
		})
	}
}

// TestNoTask: an episode that ends before its first turn has no tools.
func TestNoTask(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		for name, end := range map[string]func(*mcp.Player){
			"end":   func(p *mcp.Player) { p.End(&cube.StepError{ErrorType: "E"}) },
			"leave": func(p *mcp.Player) { p.Leave(errGone) },
		} {
			t.Run(w.String()+"-"+name, func(t *testing.T) {
				t.Parallel()
				p := newPlayer()
				end(p)
				s := w.dial(t, p, nil)
				if got := s.InitializeResult().Instructions; got != "" {
					t.Errorf("instructions %q", got)
				}
				list, err := s.ListTools(t.Context(), nil)
				if err != nil || list.Tools == nil || len(list.Tools) != 0 {
					t.Errorf("tools %v, %v", list, err)
				}
				wants(t, s, "look", nil, refused, true)
				if _, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "task"}); err == nil {
					t.Error("there is a prompt")
				}
				if obs, err := p.First(t.Context()); err == nil {
					t.Errorf("first %v", obs)
				}
				actions, err := p.Act(t.Context(), cube.Observe(), offered())
				if want := map[string]error{"leave": errGone}[name]; actions != nil || !errors.Is(err, want) {
					t.Errorf("Act: %v, %v", actions, err)
				}
			})
		}
	}
}

// TestFirstCut: nobody waits longer than they want to.
func TestFirstCut(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errGone)
	p := newPlayer()
	if _, err := p.First(ctx); !errors.Is(err, errGone) {
		t.Error(err)
	}
	if actions, err := p.Act(ctx, cube.Observe(), nil); actions != nil || !errors.Is(err, errGone) {
		t.Errorf("%v, %v", actions, err)
	}
}

// TestLeave: Leave ends an Act that waits, with the error that counts first, and refuses
// calls.
func TestLeave(t *testing.T) {
	t.Parallel()
	for _, want := range []error{nil, errGone} {
		g := start(t, nil)
		s := way{"stdio", modern}.dial(t, g.Player, nil)
		wants(t, s, "look", nil, "did look{}", false)
		g.Leave(want)
		g.Leave(errors.New("later"))
		wants(t, s, "look", nil, refused, true)
		if err := <-g.ended; !errors.Is(err, want) {
			t.Errorf("Act returned %v, want %v", err, want)
		}
		wants(t, s, "look", nil, refused, true)
	}
}

// TestActCut: when the driver's time is up, calls wait until it says that the episode has
// ended.
func TestActCut(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			p := newPlayer()
			ctx, cancel := context.WithCancelCause(t.Context())
			first := make(chan []cube.Action, 1)
			go func() {
				actions, _ := p.Act(ctx, cube.Observe(cube.Text("Go.")), offered())
				first <- actions
			}()
			s := w.dial(t, p, nil)
			answers := make(chan string, 2)
			ask := func(tool string) {
				text, isError := call(t, s, tool, nil)
				answers <- fmt.Sprint(tool, ": ", text, " ", isError)
			}
			go ask("look")
			if actions := <-first; len(actions) != 1 || actions[0].Name != "look" {
				t.Fatalf("actions %v", actions)
			}
			go ask(cube.StopName) // waits, as nobody acts
			cancel(errGone)
			if actions, err := p.Act(ctx, cube.Observe(cube.Text("seen")), offered()); actions != nil || !errors.Is(err, errGone) {
				t.Errorf("%v, %v", actions, err)
			}
			if got := <-answers; got != "look: seen false" {
				t.Errorf("answer %q", got)
			}
			p.End(nil)
			if got := <-answers; got != "final_step: "+refused+" true" {
				t.Errorf("answer %q", got)
			}
		})
	}
}

// TestParallel: calls that come at once are done one after the other, each with its own
// answer, whoever made them.
func TestParallel(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			var busy sync.Mutex
			g := start(t, func(a cube.Action) (*cube.Observation, *cube.StepError) {
				if !busy.TryLock() {
					t.Error("two at once")
				}
				defer busy.Unlock()
				return cube.Observe(cube.Text(describe(a))), nil
			})
			var wg sync.WaitGroup
			var want []string
			for client := range 2 {
				s := w.dial(t, g.Player, nil)
				for i := range 25 {
					to := fmt.Sprint(client, ".", i)
					text := fmt.Sprintf("walk{'to': '%s'}", to)
					want = append(want, text)
					wg.Go(func() { wants(t, s, "walk", map[string]any{"to": to}, text, false) })
				}
			}
			wg.Wait()
			got := g.done()
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("actions %q", got)
			}
		})
	}
}

// TestToolsChange: clients are told that other actions are offered.
func TestToolsChange(t *testing.T) {
	t.Parallel()
	for _, w := range []way{{"stdio", modern}, {"stdio", legacy}, {"http", modern}} {
		t.Run(w.String(), func(t *testing.T) {
			t.Parallel()
			p := newPlayer()
			key := cube.ActionSchema{Name: "open", Description: "Open the door."}
			go func() {
				_, _ = p.Act(t.Context(), cube.Observe(), offered())
				_, _ = p.Act(t.Context(), cube.Observe(), append([]cube.ActionSchema{key}, offered()...))
			}()
			told := make(chan struct{}, 10)
			s := w.dial(t, p, &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { told <- struct{}{} }})
			before, err := s.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			wants(t, s, "look", nil, "(no result)", false)
			<-told
			after, err := s.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if want := append([]string{"open"}, toolNames(before)...); !slices.Equal(toolNames(after), want) {
				t.Errorf("tools %q, want %q", toolNames(after), want)
			}
		})
	}
}

// TestBigAnswers: texts are bounded, and images are whole.
func TestBigAnswers(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("é", 200<<10)
	shots := cube.Observe(cube.Text(big), cube.Text(big), cube.Text("end"),
		&cube.ImageContent{Data: cube.NewImage(image.NewGray(image.Rect(0, 0, 9, 9)))})
	g := start(t, func(cube.Action) (*cube.Observation, *cube.StepError) { return shots, nil })
	for _, w := range ways {
		got, _ := call(t, w.dial(t, g.Player, nil), "look", nil)
		if len(got) > 256<<10+200 || !strings.HasPrefix(got, "éé") || !strings.HasSuffix(got, "|<image/png>|[2 texts are left out here]") ||
			!strings.Contains(got, "bytes are left out here]\né") {
			t.Errorf("%s: %d bytes, end %q", w, len(got), got[len(got)-100:])
		}
	}
}

// TestSchemas: what actions have as parameters becomes what clients take as a schema.
func TestSchemas(t *testing.T) {
	t.Parallel()
	p := newPlayer()
	inf := cube.Float(1e308)
	inf *= 10
	var actions []cube.ActionSchema
	for i, parameters := range []*cube.Object{
		nil, cube.Pairs(), cube.Pairs("type", "string"), cube.Pairs("required", []string{"é\u2028"}),
		cube.Pairs("properties", cube.Pairs("x", cube.Pairs("maximum", inf))),
	} {
		actions = append(actions, cube.ActionSchema{Name: fmt.Sprint("a", i), Description: "D\xff.", Parameters: parameters})
	}
	go func() { _, _ = p.Act(t.Context(), cube.Observe(), actions) }()
	list, err := way{"http", modern}.dial(t, p, nil).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	empty := "map[properties:map[] type:object]"
	for i, want := range []string{empty, empty, empty, "map[properties:map[] required:[é\u2028] type:object]", empty} {
		if got := fmt.Sprint(list.Tools[i].InputSchema); got != want || list.Tools[i].Description != "D\uFFFD." {
			t.Errorf("tool %d: %s, %q; want %s", i, got, list.Tools[i].Description, want)
		}
	}
}

// TestInstruction: an observation for agents that take text.
func TestInstruction(t *testing.T) {
	t.Parallel()
	img := &cube.ImageContent{Data: cube.NewImage(image.NewGray(image.Rect(0, 0, 2, 2)))}
	named := &cube.ImageContent{Data: img.Data}
	named.Name = new("Map")
	obs := cube.Observe(cube.Text("Look:"), img, cube.Text(""), named, &cube.VideoContent{})
	text, images := mcp.Instruction(obs, func(i int) string { return fmt.Sprintf("/tmp/%d.png", i) })
	const want = "Look:\n\n[image: /tmp/0.png]\n\n## Map\n\n[image: /tmp/1.png]\n\n[content of type cube.core.VideoContent, which cannot be shown]"
	if text != want || len(images) != 2 || string(images[1][1:4]) != "PNG" {
		t.Errorf("%q, %d images", text, len(images))
	}
	if text, _ := mcp.Instruction(cube.Observe(img), nil); text != "[an image]" {
		t.Errorf("%q", text)
	}
	for _, obs := range []*cube.Observation{nil, {}} {
		if text, images := mcp.Instruction(obs, nil); text != "" || images != nil {
			t.Errorf("%q, %v", text, images)
		}
	}
}
