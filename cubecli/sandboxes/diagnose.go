package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
)

// DiagnosisKind says what a [Diagnosis] is about.
type DiagnosisKind string

// The kinds.
const (
	KindEnvironment DiagnosisKind = "environment" // what -e chooses
	KindRuntime     DiagnosisKind = "runtime"     // what --runtime chooses
	KindNetwork     DiagnosisKind = "network"     // of public sandboxes of the runtimes
)

// Diagnosis is one thing that works on this machine or does not: what proctor doctor
// --json lists.
type Diagnosis struct {
	Kind      DiagnosisKind `json:"kind"`
	Name      string        `json:"name"`
	Available bool          `json:"available"`
	Detail    string        `json:"detail,omitempty"` // why not, or where it is
	Fix       string        `json:"fix,omitempty"`
	// Posture is what commands in its sandboxes can do, measured; nil where it
	// could not be, for Unmeasured.
	Posture    *Postures `json:"posture,omitempty"`
	Unmeasured string    `json:"unmeasured,omitempty"`
}

// measured notes what commands can do in the sandboxes of a backend.
func (d *Diagnosis) measured(ctx context.Context, b sandbox.Backend) {
	images := []string{""}
	with, ok := b.(localImages)
	if ok = ok && !b.Capabilities().OwnRoot; ok {
		var err error
		if images, err = with.LocalImages(ctx); err != nil || len(images) == 0 {
			d.Unmeasured = "there is no image to make a sandbox of"
			return
		}
	}
	for tried := 0; len(images) > 0 && tried < mostImages; images = images[1:] {
		p, err := posturesOf(ctx, b, sandbox.Image{Ref: images[0]})
		if err == nil {
			d.Posture, d.Unmeasured = &p, ""
			return
		}
		d.Unmeasured = err.Error()
		switch {
		case errors.Is(err, errNoPosture):
			tried++
		case ok && removed(ctx, with, images[0]): // by whoever had made it, as a trial
		default:
			return
		}
	}
}

// localImages is the ability of a backend to list images that need no pulling.
type localImages interface {
	LocalImages(ctx context.Context) ([]string, error)
}

// removed reports whether an image is not there any more.
func removed(ctx context.Context, b localImages, ref string) bool {
	left, err := b.LocalImages(ctx)
	return err == nil && !slices.Contains(left, ref)
}

// mostImages is how many images are tried: not every one has the programs that
// measure.
const mostImages = 5

// Diagnose tries every environment of the options' registry and every runtime, and
// says of each whether it works here. It makes no sandbox that stays.
func Diagnose(ctx context.Context, o Options) []Diagnosis {
	var all []Diagnosis
	for _, name := range o.Backends.Names() {
		all = append(all, diagnoseEnvironment(ctx, o, name))
	}
	runtimes, err := Runtimes(ctx, o)
	if err != nil {
		return append(all, Diagnosis{Kind: KindRuntime, Name: "all", Detail: err.Error()})
	}
	for _, r := range runtimes {
		d := Diagnosis{Kind: KindRuntime, Name: r.Name, Available: r.Available, Detail: r.Reason, Fix: r.Fix}
		if r.Available {
			d.Detail = r.Path
			d.measureRuntime(ctx, o)
		}
		all = append(all, d)
	}
	return append(all, diagnoseNetwork())
}

// diagnoseNetwork says whether public sandboxes of the runtimes have a network of
// their own.
func diagnoseNetwork() Diagnosis {
	d := Diagnosis{Kind: KindNetwork, Name: "own", Available: true}
	if fix, err := OwnNetwork(); err != nil {
		reason, _ := sandbox.Why(err)
		d.Available, d.Fix = false, fix
		d.Detail = fmt.Sprintf("public sandboxes of -e sandbox and -e host reach others through an HTTP proxy only, unless --ek network=host gives them this machine's network: %s", reason)
	}
	return d
}

func diagnoseEnvironment(ctx context.Context, o Options, name string) Diagnosis {
	d := Diagnosis{Kind: KindEnvironment, Name: name}
	b, closeBackend, err := New(ctx, name, o)
	if err != nil {
		d.Detail, d.Fix = sandbox.Why(err)
		return d
	}
	defer func() { _ = closeBackend() }()
	if err := b.Check(ctx); err != nil {
		d.Detail, d.Fix = sandbox.Why(err)
		return d
	}
	d.Available = true
	if engine, ok := b.(supervised); ok {
		d.Detail, d.Fix = diagnoseSupervision(ctx, engine)
		d.measured(ctx, b)
	}
	return d
}

// measureRuntime notes what commands can do with a runtime, in a sandbox with this
// machine's own files: those of images are the same but for their files.
func (d *Diagnosis) measureRuntime(ctx context.Context, o Options) {
	o.Runtime = d.Name
	b, closeBackend, err := New(ctx, sandbox.BackendHost, o)
	if err != nil {
		d.Unmeasured = err.Error()
		return
	}
	defer func() { _ = closeBackend() }()
	d.measured(ctx, b)
}

// supervised is a backend that may have to do without the guest.
type supervised interface {
	Supervision(ctx context.Context, labels sandbox.Labels) (kind string, why error)
}

// diagnoseSupervision says what the engine's containers promise of processes
// that are ended.
func diagnoseSupervision(ctx context.Context, engine supervised) (detail, fix string) {
	self, err := procid.Self()
	if err != nil {
		return err.Error(), ""
	}
	kind, why := engine.Supervision(ctx, sandbox.Labels{Job: "doctor", Trial: "doctor", Owner: self})
	switch kind {
	case sandbox.SupervisionGuest:
		return "commands are supervised by the guest in each container", ""
	case sandbox.SupervisionEngine:
		return fmt.Sprintf("commands are supervised by the engine alone, so that ending one ends everything in its container, and there are no allow lists: %v", why),
			"put proctor-guest, or proctor-guest-linux-ARCH for the engine's processor, beside proctor"
	default:
		return fmt.Sprintf("what supervises commands cannot be told: %v", why), ""
	}
}
