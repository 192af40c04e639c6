package compose

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/sandbox"
)

// mounts translates volumes, tmpfs, and the secrets and configs that are files.
func (p *project) mounts(s *types.ServiceConfig, host *container.HostConfig) error {
	for _, v := range s.Volumes {
		if v.Type == types.VolumeTypeBind && createsSource(v) {
			host.Binds = append(host.Binds, bindText(v))
			continue
		}
		m, err := p.mountOf(v)
		if err != nil {
			return fmt.Errorf("volume on %q: %w", v.Target, err)
		}
		host.Mounts = append(host.Mounts, m)
	}
	for _, t := range s.Tmpfs {
		if host.Tmpfs == nil {
			host.Tmpfs = map[string]string{}
		}
		target, options, _ := strings.Cut(t, ":")
		host.Tmpfs[target] = options
	}
	objects, err := p.objects(s)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.file != "" {
			host.Mounts = append(host.Mounts, mount.Mount{Type: mount.TypeBind, Source: o.file, Target: o.target, ReadOnly: true})
		}
	}
	return nil
}

// createsSource reports whether a bind mount's source is to be made when it is
// missing. Engines do so only for mounts in their older, textual form, which
// has no place for colons.
func createsSource(v types.ServiceVolumeConfig) bool {
	return (v.Bind == nil || bool(v.Bind.CreateHostPath)) && !strings.Contains(v.Source+v.Target, ":")
}

func bindText(v types.ServiceVolumeConfig) string {
	mode := "rw"
	if v.ReadOnly {
		mode = "ro"
	}
	options := []string{mode}
	if v.Bind != nil && v.Bind.SELinux != "" {
		options = append(options, v.Bind.SELinux)
	}
	if v.Bind != nil && v.Bind.Propagation != "" {
		options = append(options, v.Bind.Propagation)
	}
	return v.Source + ":" + v.Target + ":" + strings.Join(options, ",")
}

func (p *project) mountOf(v types.ServiceVolumeConfig) (mount.Mount, error) {
	m := mount.Mount{Type: mount.Type(v.Type), Source: v.Source, Target: v.Target, ReadOnly: v.ReadOnly}
	switch v.Type {
	case types.VolumeTypeBind:
		m.BindOptions = &mount.BindOptions{Propagation: mount.PropagationRPrivate}
		if v.Bind != nil && v.Bind.Propagation != "" {
			m.BindOptions.Propagation = mount.Propagation(v.Bind.Propagation)
		}
	case types.VolumeTypeVolume:
		if v.Source != "" {
			m.Source = p.model.Volumes[v.Source].Name
		}
		if v.Volume != nil {
			m.VolumeOptions = &mount.VolumeOptions{NoCopy: v.Volume.NoCopy, Labels: v.Volume.Labels}
		}
	case types.VolumeTypeTmpfs:
		if v.Tmpfs != nil {
			m.TmpfsOptions = &mount.TmpfsOptions{SizeBytes: int64(v.Tmpfs.Size), Mode: fs.FileMode(v.Tmpfs.Mode)}
		}
	default:
		return m, fmt.Errorf("type %q: %w", v.Type, sandbox.ErrUnsupported)
	}
	return m, nil
}

// object is a secret or config of a service: a file of the host, or text.
type object struct {
	file     string
	text     string
	target   string
	mode     int64
	uid, gid int
}

// objects lists the secrets and configs of a service with where they go.
func (p *project) objects(s *types.ServiceConfig) ([]object, error) {
	var list []object
	add := func(kind, dir string, ref types.FileReferenceConfig, from types.FileObjectConfig) error {
		o := object{file: from.File, text: from.Content, target: ref.Target, mode: 0o444}
		switch {
		case o.target == "":
			o.target = path.Join(dir, ref.Source)
		case !path.IsAbs(o.target):
			o.target = path.Join(dir, o.target)
		}
		if from.Environment != "" {
			value, ok := p.model.Environment[from.Environment]
			if !ok {
				return fmt.Errorf("%s %q: environment variable %q is not set", kind, ref.Source, from.Environment)
			}
			o.text = value
		}
		if o.file != "" {
			list = append(list, o)
			return nil
		}
		if ref.Mode != nil {
			o.mode = int64(*ref.Mode)
		}
		for dst, text := range map[*int]string{&o.uid: ref.UID, &o.gid: ref.GID} {
			if text == "" {
				continue
			}
			id, err := strconv.Atoi(text)
			if err != nil {
				return fmt.Errorf("%s %q: owner %q is not a number", kind, ref.Source, text)
			}
			*dst = id
		}
		list = append(list, o)
		return nil
	}
	for _, ref := range s.Secrets {
		if err := add("secret", "/run/secrets", types.FileReferenceConfig(ref), types.FileObjectConfig(p.model.Secrets[ref.Source])); err != nil {
			return nil, err
		}
	}
	for _, ref := range s.Configs {
		if err := add("config", "/", types.FileReferenceConfig(ref), types.FileObjectConfig(p.model.Configs[ref.Source])); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// putObjects writes the secrets and configs that are texts into a container
// that was not started yet.
func (p *project) putObjects(ctx context.Context, s *types.ServiceConfig, id string) error {
	objects, err := p.objects(s)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.file != "" {
			continue
		}
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		err := w.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: strings.TrimPrefix(o.target, "/"), Size: int64(len(o.text)),
			Mode: o.mode, Uid: o.uid, Gid: o.gid, ModTime: p.e.Now(),
		})
		if err == nil {
			_, err = w.Write([]byte(o.text))
		}
		if err == nil {
			err = w.Close()
		}
		if err == nil {
			_, err = p.e.API.CopyToContainer(ctx, id, client.CopyToContainerOptions{DestinationPath: "/", Content: &archive})
		}
		if err != nil {
			return fmt.Errorf("writing %q: %w", o.target, err)
		}
	}
	return nil
}
