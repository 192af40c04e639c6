package source

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
)

// Bounds on how long a registry may take.
const (
	dialTimeout   = 30 * time.Second
	headerTimeout = 60 * time.Second
	stallTimeout  = 60 * time.Second // without a single byte of a body
	maxRedirects  = 5
)

// accept lists the manifests that can be read, the preferred first.
var accept = strings.Join([]string{
	string(types.OCIImageIndex), string(types.DockerManifestList),
	string(types.OCIManifestSchema1), string(types.DockerManifestSchema2),
}, ", ")

// ErrPlain refuses to talk to a registry without TLS, unless it is on this machine.
var ErrPlain = errors.New("no TLS, which is accepted from registries on this machine only")

// registry asks registries as the OCI distribution specification says.
type registry struct {
	keychain authn.Keychain
	retrier  *retrier
	scratch  func(pattern string) (*os.File, error)
	base     http.RoundTripper
	owned    *http.Transport // closed with the Finder; nil when it is the user's
}

func newRegistry(opts Options) *registry {
	r := &registry{keychain: opts.Keychain, scratch: opts.Scratch}
	if r.keychain == nil {
		r.keychain = authn.DefaultKeychain
	}
	table := opts.Retries
	if table == nil {
		table = defaultRetries()
	}
	r.retrier = &retrier{table: table, log: opts.Log, sleep: opts.Sleep, now: opts.Now}
	next := opts.Transport
	if next == nil {
		r.owned = &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSHandshakeTimeout:   dialTimeout,
			ResponseHeaderTimeout: headerTimeout,
			ForceAttemptHTTP2:     true,
			// Layers are compressed already, and digests are of what was sent.
			DisableCompression: true,
		}
		next = r.owned
	}
	r.base = &retryTransport{next: guard{next}, retrier: r.retrier}
	return r
}

func (r *registry) close() {
	if r.owned != nil {
		r.owned.CloseIdleConnections()
	}
}

// guard lets only requests through that are encrypted or stay on this machine.
// The names that a registry's answers redirect to pass here too.
type guard struct{ next http.RoundTripper }

func (g guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && !isLoopback(req.URL.Hostname()) {
		return nil, fmt.Errorf("%s: %w", req.URL.Host, ErrPlain)
	}
	return g.next.RoundTrip(req)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// checkRedirect keeps a registry from sending us to addresses that only this
// machine can reach.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	from, to := via[0].URL.Hostname(), req.URL.Hostname()
	if from != to && isPrivate(to) && !isPrivate(from) {
		return fmt.Errorf("redirected from %s to the private address %s", from, to)
	}
	return nil
}

func isPrivate(host string) bool {
	ip := net.ParseIP(host)
	return isLoopback(host) || (ip != nil && (ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified()))
}

// repository is one repository of a registry, with access granted.
type repository struct {
	repo    name.Repository
	scheme  string
	client  *http.Client
	retrier *retrier
	scratch func(pattern string) (*os.File, error)
}

var _ shelf = (*repository)(nil)

// repository does the handshake: which scheme, which authentication, a token.
func (r *registry) repository(ctx context.Context, repo name.Repository) (*repository, error) {
	auth, keyErr := authn.Resolve(ctx, r.keychain, repo)
	if keyErr != nil {
		// A broken credential helper need not keep anybody from a public image.
		auth = authn.Anonymous
	}
	tr, err := transport.NewWithContext(ctx, repo.Registry, auth, r.base, []string{repo.Scope(transport.PullScope)})
	if err != nil {
		if keyErr != nil {
			err = fmt.Errorf("%w (without credentials, because reading them ended in: %w)", err, keyErr)
		}
		return nil, err
	}
	return &repository{
		repo:    repo,
		scheme:  repo.Scheme(),
		client:  &http.Client{Transport: tr, CheckRedirect: checkRedirect},
		retrier: r.retrier,
		scratch: r.scratch,
	}, nil
}

// get requests /v2/NAME/KIND/ID. The caller closes the body.
func (r *repository) get(ctx context.Context, kind, id string, header http.Header) (*http.Response, error) {
	u := url.URL{Scheme: r.scheme, Host: r.repo.RegistryStr(), Path: fmt.Sprintf("/v2/%s/%s/%s", r.repo.RepositoryStr(), kind, id)}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", r.repo.RegistryStr(), err)
	}
	for key, values := range header {
		req.Header[key] = values
	}
	return r.client.Do(req)
}

func (r *repository) manifestBy(ctx context.Context, id string) (raw []byte, mediaType types.MediaType, err error) {
	resp, err := r.get(ctx, "manifests", id, http.Header{"Accept": {accept}})
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := transport.CheckError(resp, http.StatusOK); err != nil {
		return nil, "", fmt.Errorf("asking for manifest %s: %w", id, err)
	}
	if raw, err = bounded.Read(resp.Body, MaxManifest); err != nil {
		err = fmt.Errorf("reading manifest %s of %s: %w", id, r.repo.Name(), err)
	}
	return raw, types.MediaType(resp.Header.Get("Content-Type")), err
}

func (r *repository) manifest(ctx context.Context, d v1.Descriptor) ([]byte, error) {
	raw, _, err := r.manifestBy(ctx, d.Digest.String())
	return raw, err
}

func (r *repository) config(ctx context.Context, d v1.Descriptor) ([]byte, error) {
	resp, err := r.get(ctx, "blobs", d.Digest.String(), nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := transport.CheckError(resp, http.StatusOK); err != nil {
		return nil, fmt.Errorf("asking for configuration %s: %w", d.Digest, err)
	}
	return bounded.Read(resp.Body, maxConfig)
}

func (r *repository) layer(d v1.Descriptor) Layer { return remoteLayer{r, d} }

// Registry asks the registry for a reference. Errors: *MissingError, *PlatformError,
// *UnauthorizedError, *UnreachableError, *blob.DigestError.
func (f *Finder) Registry(ctx context.Context, r Reference) (*Candidate, error) {
	c, err := f.askRegistry(ctx, r)
	if err != nil {
		return nil, RegistryError(ctx, r, err)
	}
	return c, nil
}

func (f *Finder) askRegistry(ctx context.Context, r Reference) (*Candidate, error) {
	repo, err := f.registry.repository(ctx, r.name.Context())
	if err != nil {
		return nil, err
	}
	raw, mediaType, err := repo.manifestBy(ctx, r.name.Identifier())
	if err != nil {
		return nil, err
	}
	desc := v1.Descriptor{MediaType: mediaType, Size: int64(len(raw))}
	if want, err := v1.NewHash(r.name.Identifier()); err == nil {
		desc.Digest = want
		if err := blob.VerifyBytes(fmt.Sprintf("manifest of %q", r.Raw), want, raw); err != nil {
			return nil, err
		}
	} else if desc.Digest, err = v1.NewHash(blob.DigestOf(raw)); err != nil {
		return nil, fmt.Errorf("manifest of %q: %w", r.Raw, err)
	}
	return f.readCandidate(ctx, r.Raw, repo, desc, raw)
}

// RegistryError sorts what went wrong with a registry into the errors that
// callers know.
func RegistryError(ctx context.Context, r Reference, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("pulling %q: %w", r.Raw, context.Cause(ctx))
	}
	host := r.name.Context().RegistryStr()
	if terr, ok := errors.AsType[*transport.Error](err); ok {
		switch terr.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			return &UnauthorizedError{Ref: r.Raw, Registry: host, Err: err}
		case http.StatusNotFound:
			return &MissingError{Ref: r.Raw, Looked: []string{fmt.Sprintf("registry %s: %v", host, err)}}
		default:
			return &UnreachableError{Ref: r.Raw, Registry: host, Err: err}
		}
	}
	if errors.Is(err, ErrPlain) {
		return &UnreachableError{Ref: r.Raw, Registry: host, Err: err}
	}
	if _, ok := errors.AsType[net.Error](err); ok || breaks(err) {
		return &UnreachableError{Ref: r.Raw, Registry: host, Err: err}
	}
	return err
}
