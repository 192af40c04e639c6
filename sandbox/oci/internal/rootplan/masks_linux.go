package rootplan

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// replaced are host directories that a sandbox gets empty: what belongs to the
// running machine and its users.
var replaced = []string{
	"/proc", "/sys", "/dev", "/run", "/var/run", "/tmp", "/var/tmp", "/lost+found", "/var/lock",
	"/home", "/root", "/mnt", "/media",
	"/var/log", "/var/mail", "/var/spool/mail", "/var/spool/cron", "/var/backups", "/var/crash",
}

// secret are host files and directories that hold credentials, as patterns of
// path.Match. Directories appear empty, files not at all.
var secret = []string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/security/opasswd",
	"/etc/.pwd.lock", "/etc/sudoers.d", "/etc/krb5.keytab", "/etc/ssh/ssh_host_*_key", "/etc/ssh/*.pem",
	"/etc/ssl/private", "/etc/pki/*/private", "/etc/letsencrypt", "/etc/ipsec.secrets", "/etc/ipsec.d/private",
	"/etc/wireguard", "/etc/openvpn", "/etc/ppp/*-secrets", "/etc/wpa_supplicant",
	"/etc/NetworkManager/system-connections", "/etc/netplan", "/etc/apt/auth.conf", "/etc/apt/auth.conf.d",
	"/etc/kubernetes", "/etc/rancher", "/etc/docker", "/etc/containerd", "/etc/cni", "/etc/cloud",
	"/etc/boto.cfg", "/etc/google", "/etc/amazon", "/etc/azure", "/etc/vault.d", "/etc/consul.d", "/etc/nomad.d",
	"/etc/credstore", "/etc/credstore.encrypted", "/etc/fstab.d", "/etc/cifs-credentials",
	"/etc/mysql/debian.cnf", "/etc/postgresql", "/etc/machine-secret", "/etc/environment.d", "/etc/gitlab", "/etc/gitlab-runner",
	"/var/lib/docker", "/var/lib/containerd", "/var/lib/containers", "/var/lib/kubelet", "/var/lib/rancher", "/var/lib/etcd",
	"/var/lib/cloud", "/var/lib/amazon", "/var/lib/google", "/var/lib/waagent", "/var/lib/private", "/var/lib/systemd/credential.secret",
	"/var/lib/NetworkManager", "/var/lib/bluetooth", "/var/lib/sss", "/var/lib/samba/private", "/var/lib/krb5kdc",
	"/var/lib/mysql", "/var/lib/postgresql", "/var/lib/mongodb", "/var/lib/redis", "/var/lib/vault",
	"/var/lib/libvirt", "/var/lib/lxc", "/var/lib/lxd", "/var/snap", "/snap",
	"/var/lib/proctor",
}

// credentials are names below a home directory that hold secrets. They are masked in
// the homes of system users, whose other files are programs' data, and in those of
// people that are shown.
var credentials = []string{
	".ssh", ".aws", ".azure", ".config", ".kube", ".docker", ".gnupg", ".netrc", ".git-credentials", ".gitconfig",
	".npmrc", ".pypirc", ".cargo", ".m2", ".gradle", ".huggingface", ".cache", ".local", ".password-store", ".vault-token",
	".pgpass", ".my.cnf", ".s3cfg", ".boto", ".env", ".bash_history", ".python_history", ".mysql_history", ".psql_history",
	".claude", ".claude.json", ".codex", ".gemini", ".openai",
}

// secretMasks are the files and directories of the host that hold credentials. They
// may be missing, or be links.
func secretMasks(root fs.FS) []string {
	var masks []string
	for _, pattern := range secret {
		if !strings.ContainsAny(pattern, "*?[") {
			masks = append(masks, pattern)
			continue
		}
		found, _ := fs.Glob(root, pattern[1:]) // the patterns are correct
		for _, f := range found {
			masks = append(masks, "/"+f)
		}
	}
	return masks
}

// homeMasks are the homes of people, wherever they lie, and the credentials in all
// homes.
func homeMasks(root fs.FS) []string {
	var masks []string
	credentialsIn := func(home string) {
		list, _ := fs.ReadDir(root, fsName(home)) // what cannot be read has nothing to hide
		for _, d := range list {
			if slices.Contains(credentials, d.Name()) {
				masks = append(masks, path.Join(home, d.Name()))
			}
		}
	}
	accounts, _ := fs.ReadFile(root, "etc/passwd") // a machine without it has no other users
	seen := map[string]bool{}
	for line := range strings.Lines(string(accounts)) {
		fields := strings.Split(line, ":")
		if len(fields) < 7 || !path.IsAbs(fields[5]) {
			continue
		}
		home := path.Clean(fields[5])
		uid, err := strconv.Atoi(fields[2])
		if err != nil || seen[home] || programDir(home) {
			continue
		}
		seen[home] = true
		if uid >= 1000 && uid < 65534 && home != "/" && !sharedDir(home) {
			masks = append(masks, home)
		}
		credentialsIn(home)
	}
	// Homes of people whom another directory than /etc/passwd knows.
	others, _ := fs.ReadDir(root, "home")
	for _, d := range others {
		if home := path.Join("/home", d.Name()); !seen[home] {
			masks = append(masks, home)
			credentialsIn(home)
		}
	}
	return masks
}

// programDir recognises directories without which nothing runs; no entry of
// /etc/passwd makes them disappear.
func programDir(dir string) bool {
	top := strings.SplitN(dir[1:], "/", 2)[0]
	return slices.Contains([]string{"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "boot", "nix"}, top)
}

// sharedDir recognises directories that are nobody's home alone.
func sharedDir(dir string) bool {
	return slices.Contains([]string{"/opt", "/srv", "/var", "/var/lib", "/var/cache", "/var/spool"}, dir)
}

// lockedAccounts is an /etc/shadow or /etc/gshadow for the names of an
// /etc/passwd or /etc/group, in which nobody has a password.
func lockedAccounts(root fs.FS, names string, rest string) []byte {
	data, err := fs.ReadFile(root, names)
	if err != nil {
		return nil
	}
	var out strings.Builder
	for line := range strings.Lines(string(data)) {
		if name, _, ok := strings.Cut(line, ":"); ok && name != "" {
			out.WriteString(name + ":*:" + rest + "\n")
		}
	}
	return []byte(out.String())
}
