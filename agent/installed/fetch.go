package installed

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox"
)

// defaultRegistry is npm's own.
const defaultRegistry = "https://registry.npmjs.org"

// registry is the address of npm's registry, as npm finds it.
func (p *program) registry() string {
	return strings.TrimRight(cmp.Or(p.lookup("npm_config_registry", "NPM_CONFIG_REGISTRY"), defaultRegistry), "/")
}

// hosts are what an installation reaches; none where that is not known.
func (p *program) hosts() []string {
	own := p.def.Install.Hosts
	if strings.TrimSpace(p.def.Install.Script) != "" && len(own) == 0 || len(p.def.Install.NPM) == 0 {
		return own
	}
	u, err := url.Parse(p.registry())
	if err != nil || u.Hostname() == "" {
		return nil
	}
	return append(slices.Clone(own), u.Hostname())
}

// fetcher fetches packages of npm to this machine.
type fetcher struct {
	registry string
	keep     string // a directory of this user's alone
}

const (
	maxMetadata = 8 << 20
	maxPackage  = 512 << 20
	fetchLimit  = 10 * time.Minute
)

// fetch returns the path of a package's archive, whose hash is the one that the registry
// tells.
func (f *fetcher) fetch(ctx context.Context, pkg, version string) (string, error) {
	name := pkg + "-" + version + ".tgz"
	if file := filepath.Join(f.keep, name); isFile(file) {
		return file, nil
	}
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	var about struct {
		Dist struct{ Tarball, Integrity string }
	}
	data, err := f.get(ctx, f.registry+"/"+url.PathEscape(pkg)+"/"+url.PathEscape(version), maxMetadata)
	if err == nil {
		err = json.Unmarshal(data, &about)
	}
	if err == nil && about.Dist.Tarball == "" {
		err = errors.New("the registry does not tell where it is")
	}
	if err != nil {
		return "", fmt.Errorf("asking for package %s %s: %w", pkg, version, err)
	}
	if data, err = f.get(ctx, about.Dist.Tarball, maxPackage); err != nil {
		return "", fmt.Errorf("fetching package %s %s: %w", pkg, version, err)
	}
	if err := checkIntegrity(data, about.Dist.Integrity); err != nil {
		return "", fmt.Errorf("fetching package %s %s: %w", pkg, version, err)
	}
	if err := os.MkdirAll(f.keep, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(f.keep, name)
	return file, atomicfile.Write(file, data, 0o644)
}

func isFile(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}

func (f *fetcher) get(ctx context.Context, address string, limit int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, wrap(err, "asking the registry")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", req.URL.Redacted(), res.Status)
	}
	return bounded.Read(res.Body, limit)
}

// checkIntegrity compares with a hash as registries write it: "sha512-" and base64. Where
// there are several, one that is known must be there and fit.
func checkIntegrity(data []byte, integrity string) error {
	sum := sha512.Sum512(data)
	want := "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
	known := false
	for _, one := range strings.Fields(integrity) {
		if one == want {
			return nil
		}
		known = known || strings.HasPrefix(one, "sha512-")
	}
	if known {
		return errors.New("its hash is not the one that the registry tells")
	}
	return errors.New("the registry tells no SHA-512 of it")
}

// uploadPackage unpacks a package's archive, or one file of it, below a directory of a
// sandbox. Archives have everything in a directory of their own.
func uploadPackage(ctx context.Context, sb sandbox.Sandbox, file, dir, only string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	packed, err := gzip.NewReader(f)
	if err != nil {
		return wrap(err, "reading the archive")
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(repack(tar.NewReader(packed), w, only)) }()
	err = sb.Upload(ctx, dir, r)
	r.CloseWithError(err)
	return err
}

// maxUnpacked and maxEntries bound what a package's archive may unpack to, in bytes and in
// entries.
const (
	maxUnpacked = 4 << 30
	maxEntries  = 1 << 18
)

// repack copies the files of an archive without its top directory, as root's.
func repack(from *tar.Reader, w io.Writer, only string) error {
	to := tar.NewWriter(w)
	files, left := 0, int64(maxUnpacked)
	for entries := 0; ; entries++ {
		h, err := from.Next()
		if errors.Is(err, io.EOF) && files == 0 {
			return fmt.Errorf("the archive has no %s", cmp.Or(only, "files"))
		}
		if errors.Is(err, io.EOF) {
			return wrap(to.Close(), "packing the archive's files")
		}
		if err != nil {
			return fmt.Errorf("reading the archive: %w", err)
		}
		if left -= h.Size; left < 0 || entries >= maxEntries {
			return errors.New("the archive unpacks to too much")
		}
		_, name, ok := strings.Cut(path.Clean(h.Name), "/")
		if !ok || !fs.ValidPath(name) || h.Typeflag != tar.TypeReg || only != "" && name != only {
			continue
		}
		files++
		err = to.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: h.Size, Mode: h.Mode&0o777 | 0o444})
		if err == nil {
			_, err = io.CopyN(to, from, h.Size)
		}
		if err != nil {
			return fmt.Errorf("packing the archive's %s: %w", name, err)
		}
	}
}
