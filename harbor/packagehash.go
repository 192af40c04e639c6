package harbor

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxIgnoreSize bounds a .gitignore, in bytes.
const maxIgnoreSize = 4 << 20

// Files and directories of a task that belong to its package (section 2.4).
var (
	packageFileNames = [...]string{configFile, "instruction.md", "README.md"}
	packageDirs      = [...]string{"environment", "tests", "solution", "steps"}
	defaultIgnores   = [...]string{"__pycache__/", "*.pyc", ".DS_Store", "*.swp", "*.swo", "*~"}
)

// PackageHash returns the content hash that lock files record, "sha256:<hex>",
// and the files it covers as slash-separated paths, sorted (section 2.4).
func PackageHash(dir string) (digest string, files []string, err error) {
	ignore, err := packageIgnores(dir)
	if err != nil {
		return "", nil, err
	}
	all, err := packageContent(dir)
	if err != nil {
		return "", nil, err
	}
	all = slices.DeleteFunc(all, func(f *file) bool { return ignore.match(f.name) })
	slices.SortFunc(all, func(a, b *file) int { return strings.Compare(a.name, b.name) })
	if err := hashFiles(all); err != nil {
		return "", nil, err
	}
	h := sha256.New()
	for _, f := range all {
		if err := checkEncodable(f.name); err != nil {
			return "", nil, err
		}
		_, _ = io.WriteString(h, f.name+"\x00"+f.hash+"\n")
		files = append(files, f.name)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), files, nil
}

func packageIgnores(dir string) (ignoreList, error) {
	path := filepath.Join(dir, ".gitignore")
	if !exists(path) {
		return parseIgnores(defaultIgnores[:]), nil
	}
	data, err := readBounded(path, maxIgnoreSize)
	if err != nil {
		return nil, err
	}
	return parseIgnores(strings.Split(strings.ReplaceAll(string(data), "\r", "\n"), "\n")), nil
}

// packageContent lists regular files and links to some, named by their path
// below dir. Links to directories are not entered, except the top ones.
func packageContent(dir string) ([]*file, error) {
	var all []*file
	for _, name := range packageFileNames {
		if path := filepath.Join(dir, name); isRegular(path) {
			all = append(all, &file{name: name, path: path})
		}
	}
	for _, name := range packageDirs {
		top := filepath.Join(dir, name)
		if !isDir(top) {
			continue
		}
		err := filepath.WalkDir(top+string(filepath.Separator), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return osError(path, err)
			}
			if entry.Type().IsRegular() || (entry.Type()&fs.ModeSymlink != 0 && isRegular(path)) {
				rel, err := filepath.Rel(dir, path)
				if err != nil {
					return err
				}
				all = append(all, &file{name: filepath.ToSlash(rel), path: path})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
