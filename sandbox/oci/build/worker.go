package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/image"
)

// worker carries the steps of one build out.
type worker struct {
	builder *Builder
	req     Request
	// contextDir is that of req, absolute.
	contextDir string
	context    *contextTree
	bases      map[string]image.Image
	say        func(string)
	total      int // steps
	at         int
	now        string // the instruction at work, shortened
}

var _ executor = (*worker)(nil)

func (w *worker) base(ref string) image.Image { return w.bases[ref] }

func (w *worker) begin(instruction string) {
	w.at++
	const limit = 80
	instruction, _, _ = strings.Cut(instruction, "\n")
	instruction = strings.ToValidUTF8(instruction, "")
	if len(instruction) > limit {
		instruction = strings.ToValidUTF8(instruction[:limit], "") + "…"
	}
	w.now = instruction
}

// step makes the image of a step, or finds it. Key names it by what it is made
// of; tidy removes from the upper directory what is not to stay.
func (w *worker) step(ctx context.Context, st *state, key string, s Step,
	work func(ctx context.Context, sb sandbox.Sandbox) error, tidy func(upper string) error,
) error {
	s.Name, s.Labels, s.Base = w.req.Name, w.req.Labels, st.image
	message := fmt.Sprintf("building %s: step %d of %d: %s", w.req.Name, w.at, w.total, w.now)
	img, err := w.builder.images.Make(ctx, key, w.req.Fresh, w.say, func(ctx context.Context, say func(string)) (image.Image, error) {
		say(message)
		return w.produce(ctx, s, work, tidy)
	})
	if err == nil {
		st.image = img
	}
	return err
}

func (w *worker) produce(ctx context.Context, s Step, work func(ctx context.Context, sb sandbox.Sandbox) error, tidy func(upper string) error) (out image.Image, err error) {
	if s.release != nil {
		defer func() { err = errors.Join(err, s.release()) }()
	}
	err = w.builder.runner.Step(ctx, s, work, func(ctx context.Context, upper string) error {
		if err := tidy(upper); err != nil {
			return err
		}
		out, err = w.builder.images.Commit(ctx, s.Base, upper, image.Changes{CreatedBy: w.now})
		return err
	})
	return out, err
}

// place writes items into the image. Source names the image that they come
// from, which cannot change; empty means the context.
func (w *worker) place(ctx context.Context, st *state, p *placing, source string) error {
	digest, err := p.digest(ctx, source == "")
	if err != nil {
		return err
	}
	key, err := stepKey(w.builder.arch, st.image, "files", source, digest)
	if err != nil {
		return err
	}
	work := func(ctx context.Context, sb sandbox.Sandbox) error {
		written, err := upload(ctx, sb, p)
		if err == nil && source == "" && written != digest {
			err = fmt.Errorf("the build context: %w", errChanges)
		}
		return err
	}
	base := st.image
	return w.step(ctx, st, key, Step{Network: sandbox.NetworkNone}, work, func(upper string) error { return settle(upper, base) })
}

// upload writes the items of a placing into a sandbox.
func upload(ctx context.Context, sb sandbox.Sandbox, p *placing) (digest string, err error) {
	pr, pw := io.Pipe()
	done := make(chan error, 1)
	go func() {
		var err error
		digest, err = p.tar(ctx, pw)
		pw.CloseWithError(err)
		done <- err
	}()
	err = sb.Upload(ctx, "/", pr)
	pr.CloseWithError(errStopped)
	if read := <-done; read != nil && !errors.Is(read, errStopped) {
		return "", read
	}
	return digest, err
}

var errStopped = errors.New("the sandbox reads no more")

func (w *worker) copy(ctx context.Context, st *state, op *copying) error {
	source, id := tree(w.context), ""
	if op.image != nil {
		source, id = op.image.Files(), "image "+op.image.ID
	}
	p, err := layOut(op, source, st.image.Files(), st.dir())
	if err != nil {
		return err
	}
	if len(p.items) == 0 {
		return nil
	}
	return w.place(ctx, st, p, id)
}

// makeWorkdir makes the working directory where it is missing. It belongs to
// the user.
func (w *worker) makeWorkdir(ctx context.Context, st *state) error {
	root := st.image.Files()
	real, info, err := resolve(root, st.workdir)
	if err != nil {
		return err
	}
	if info != nil {
		if !info.IsDir() {
			return fmt.Errorf("%q: %w", st.workdir, errNotDir)
		}
		return nil
	}
	p := newPlacing(root)
	if st.user != "" {
		o, err := findOwner(root, st.user)
		if err != nil {
			return fmt.Errorf("USER %s: %w", st.user, err)
		}
		p.parents = &o
	}
	if err := p.mkdirs(real); err != nil || len(p.items) == 0 {
		return err
	}
	return w.place(ctx, st, p, "")
}
