package installed

import (
	"cmp"
	"context"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/sandbox"
)

// npmVersion is the npm that installs packages. It is not kept.
const npmVersion = "11.21.2"

// installScript installs the packages that are its arguments below $PREFIX. It makes of
// each of their programs a file in $PREFIX/bin: a wrapper with a Node of its own, so that
// the commands of the task see no other Node than their image's, or a link where the
// program needs none. Of a file with several names all but one become links, so that it
// is kept once.
const installScript = `set -eu
export PATH="$PREFIX/node/bin:$PATH" HOME="$WORK/home" TMPDIR="$WORK/tmp"
mkdir -p "$HOME" "$TMPDIR" "$PREFIX/npm" "$PREFIX/bin"
cd "$PREFIX/npm"
echo '{"private":true}' > package.json
node "$WORK/npm/bin/npm-cli.js" install --cache "$WORK/cache" --no-fund --no-audit --no-update-notifier --loglevel=warn -- "$@"
node - <<'END'
const fs = require("fs"), path = require("path")
const prefix = process.env.PREFIX, top = path.join(prefix, "npm")
for (const name of Object.keys(JSON.parse(fs.readFileSync(path.join(top, "package.json"))).dependencies)) {
  const dir = path.join(top, "node_modules", name)
  const { bin } = JSON.parse(fs.readFileSync(path.join(dir, "package.json")))
  const programs = typeof bin === "string" ? { [path.basename(name)]: bin } : bin || {}
  for (const [program, file] of Object.entries(programs)) {
    const target = path.join(dir, file), at = path.join(prefix, "bin", path.basename(program))
    const head = Buffer.alloc(100), fd = fs.openSync(target)
    fs.readSync(fd, head, 0, head.length, 0)
    fs.closeSync(fd)
    fs.rmSync(at, { force: true })
    if (/^#!.*\bnode\b/.test(head.toString("latin1").split("\n")[0])) {
      fs.writeFileSync(at, '#!/bin/sh\nexec "' + prefix + '/node/bin/node" "' + target + '" "$@"\n', { mode: 0o755 })
    } else {
      fs.chmodSync(target, 0o755)
      fs.symlinkSync(path.relative(path.dirname(at), target), at)
    }
  }
}
const seen = new Map()
for (const entry of fs.readdirSync(top, { recursive: true, withFileTypes: true })) {
  const file = path.join(entry.parentPath, entry.name)
  const info = fs.lstatSync(file)
  if (!info.isFile() || info.nlink < 2) continue
  const first = seen.get(info.ino)
  if (first === undefined) {
    seen.set(info.ino, file)
  } else {
    fs.rmSync(file)
    fs.symlinkSync(path.relative(path.dirname(file), first), file)
  }
}
END
`

// finishScript makes of what is in $PREFIX what can be kept and shown elsewhere. Neither
// absolute links nor files with several names survive that, so that links to places in
// $PREFIX become relative, and each name gets a file of its own.
const finishScript = `[ -d "$PREFIX" ] || exit 0
find "$PREFIX" -type l | while IFS= read -r link; do
	to=$(readlink "$link")
	case $to in "$PREFIX"/*) ;; *) continue ;; esac
	rest=${link#"$PREFIX"/} up=
	while case $rest in */*) ;; *) false ;; esac; do rest=${rest#*/} up=../$up; done
	ln -sfn "$up${to#"$PREFIX"/}" "$link"
done
find "$PREFIX" -type f -links +1 | while IFS= read -r file; do
	cp -p "$file" "$file.proctor" && mv -f "$file.proctor" "$file"
done
chmod -R a+rX,go-w "$PREFIX"
`

// workDir has what an installation needs and does not keep.
const workDir = prefixes + "/.work"

// install fills a prefix, as root, and returns the version of what is there then.
func (p *program) install(ctx context.Context, env agent.Env, prefix string) (string, error) {
	if p.def.Install.empty() {
		return "", fmt.Errorf("%s is not in the image, and its file does not say how it is installed", p.def.Name)
	}
	r := p.renderer(env)
	r.vars.Prefix = prefix
	vars := []string{"PREFIX=" + prefix, "WORK=" + workDir, "DEBIAN_FRONTEND=noninteractive"}
	trust, err := p.uploadTrust(ctx, env)
	if err != nil {
		return "", err
	}
	vars = append(vars, trust...)
	if len(p.def.Install.NPM) > 0 {
		if err := p.installPackages(ctx, env, r, vars); err != nil {
			return "", err
		}
	}
	script, err := r.render("[install] script", p.def.Install.Script)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(script) != "" {
		if err := p.installing(ctx, env, "install-script.txt", sandbox.Command{Shell: script, Env: vars}); err != nil {
			return "", err
		}
	}
	finish := "rm -rf " + workDir
	if p.def.Install.Node == "" {
		finish += " \"$PREFIX/node\""
	}
	finish += "\n" + finishScript
	if err := p.installing(ctx, env, "install-end.txt", sandbox.Command{Shell: finish, Env: vars}); err != nil {
		return "", err
	}
	version, err := p.works(ctx, env, prefix)
	return version, wrap(err, "%s was installed, but does not run", p.def.Name)
}

// installing runs a command of an installation.
func (p *program) installing(ctx context.Context, env agent.Env, log string, cmd sandbox.Command) error {
	cmd.User = "root"
	err := env.Check(ctx, log, cmd)
	if exit, ok := err.(*agent.ExitError); ok { //nolint:errorlint // as Check returns it
		return fmt.Errorf("installing %s: exit %d: %s", p.def.Name, exit.Code, readable(exit.Output))
	}
	return wrap(err, "installing %s", p.def.Name)
}

// readable is what a program printed as it can be shown on a terminal: without marks that
// change it.
func readable(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		lines[i] = console.Clean(strings.TrimRight(line, "\r"))
	}
	return strings.Join(lines, "\n")
}

// installPackages brings a Node and npm into the sandbox, and installs the packages with them.
func (p *program) installPackages(ctx context.Context, env agent.Env, r *renderer, vars []string) error {
	cmd := sandbox.Command{Argv: []string{"bash", "-c", installScript, "install"}, Env: vars}
	for _, name := range p.def.Install.NPM {
		spec, err := r.render("[install] npm", name)
		if err != nil {
			return err
		}
		cmd.Argv = append(cmd.Argv, spec)
	}
	f := fetcher{registry: p.registry(), keep: env.Downloads}
	if f.keep == "" { // a directory that others know could have what is theirs in it
		dir, err := os.MkdirTemp("", "proctor-downloads-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		f.keep = dir
	}
	node := cmp.Or(p.def.Install.Node, p.def.Install.NodeBuild)
	for _, u := range []struct {
		pkg, version, dir string
		only              string // of the package's files; empty for all
	}{
		{"node-linux-" + nodeMachine(), node, r.vars.Prefix + "/node", "bin/node"},
		{"npm", npmVersion, workDir + "/npm", ""},
	} {
		file, err := f.fetch(ctx, u.pkg, u.version)
		if err != nil {
			return err
		}
		if err := uploadPackage(ctx, env.Sandbox, file, u.dir, u.only); err != nil {
			return fmt.Errorf("uploading %s %s: %w", u.pkg, u.version, err)
		}
	}
	if f.registry != defaultRegistry {
		cmd.Env = append(cmd.Env, "npm_config_registry="+f.registry)
	}
	return p.installing(ctx, env, "install.txt", cmd)
}

// nodeMachine is how packages of Node name the machine.
func nodeMachine() string {
	if runtime.GOARCH == "amd64" {
		return "x64"
	}
	return runtime.GOARCH
}

func (p *program) lookup(names ...string) string {
	for _, name := range names {
		if p.config.Lookup != nil {
			if v, ok := p.config.Lookup(name); ok && v != "" {
				return v
			}
		}
	}
	return ""
}

// certificates is the file in the sandbox with those that this machine trusts.
const certificates = workDir + "/ca.crt"

// maxCertificates is the size of the largest file of certificates, in bytes.
const maxCertificates = 16 << 20

// uploadTrust lets an installation trust whom this machine trusts, and returns the
// variables that say so. Behind a proxy that inspects connections nothing could be fetched
// otherwise.
func (p *program) uploadTrust(ctx context.Context, env agent.Env) ([]string, error) {
	var bundle []byte
	for _, file := range []string{
		p.lookup("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"), "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
	} {
		if file == "" {
			continue
		}
		data, err := bounded.ReadFile(filepath.Clean(file), maxCertificates)
		if err != nil {
			continue
		}
		if bundle = onlyCertificates(data); bundle != nil {
			break
		}
	}
	if bundle == nil {
		return nil, nil
	}
	if err := env.UploadText(ctx, certificates, string(bundle)); err != nil {
		return nil, err
	}
	var vars []string
	for _, name := range []string{"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO"} {
		vars = append(vars, name+"="+certificates)
	}
	return vars, nil
}

// onlyCertificates are the certificates of a file; a key beside them is nothing for a
// sandbox.
func onlyCertificates(data []byte) []byte {
	var out []byte
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return out
		}
		if strings.HasSuffix(block.Type, "CERTIFICATE") {
			out = append(out, pem.EncodeToMemory(block)...)
		}
	}
}
