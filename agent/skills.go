package agent

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/bounded"
)

// skillManifest is the file that makes a directory a skill.
const skillManifest = "SKILL.md"

// Skill is a directory with instructions that an agent may read (section 8.1).
type Skill struct {
	Name string // the directory's base name
	Dir  string // on the host, as it was given
}

// FindSkills resolves paths to skills, sorted by name. A path is a skill, or a
// directory of nothing but skills, hidden ones aside. Of two skills with the
// same name the later one is taken. home replaces a leading "~"; empty leaves
// it. What is wrong with a path is an [exception.Error] under Harbor's names.
func FindSkills(paths []string, home string) ([]Skill, error) {
	byName := map[string]Skill{}
	for _, path := range paths {
		found, err := skillsAt(path, home)
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			byName[s.Name] = s
		}
	}
	skills := make([]Skill, 0, len(byName))
	for _, s := range byName {
		skills = append(skills, s)
	}
	slices.SortFunc(skills, func(a, b Skill) int { return cmp.Compare(a.Name, b.Name) })
	return skills, nil
}

func skillsAt(path, home string) ([]Skill, error) {
	dir := path
	if rest, ok := strings.CutPrefix(path, "~"); ok && home != "" && (rest == "" || rest[0] == '/') {
		dir = home + rest
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, exception.New(exception.FileNotFoundError, "Skill path does not exist: "+path)
	case err != nil:
		return nil, fmt.Errorf("looking for skills: %w", err)
	case !info.IsDir():
		return nil, exception.New(exception.ValueError, "Skill path must be a directory: "+path)
	case isSkill(dir):
		full, err := filepath.Abs(dir)
		return []Skill{{Name: filepath.Base(full), Dir: filepath.Clean(dir)}}, err
	}
	return skillsBelow(path, dir)
}

func isSkill(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, skillManifest))
	return err == nil && info.Mode().IsRegular()
}

func skillsBelow(given, dir string) ([]Skill, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("looking for skills: %w", err)
	}
	var skills []Skill
	var bad []string
	for _, e := range entries {
		child := filepath.Join(dir, e.Name())
		info, err := os.Stat(child) // a link to a directory is one
		if strings.HasPrefix(e.Name(), ".") || err != nil || !info.IsDir() {
			continue
		}
		if !isSkill(child) {
			bad = append(bad, e.Name())
			continue
		}
		skills = append(skills, Skill{Name: e.Name(), Dir: child})
	}
	problem := "Skill path " + given + " must be a skill directory with " + skillManifest + ", or a directory of such directories"
	switch {
	case len(bad) > 0:
		return nil, exception.New(exception.ValueError, problem+"; child directories without "+skillManifest+": "+strings.Join(bad, ", "))
	case len(skills) == 0:
		return nil, exception.New(exception.ValueError, problem+"; it has no child directories")
	}
	return skills, nil
}

// Digest identifies the skill's content, see [DirDigest].
func (s Skill) Digest() (string, error) {
	digest, err := DirDigest(s.Dir)
	if err != nil {
		return "", fmt.Errorf("hashing skill %q: %w", s.Name, err)
	}
	return digest, nil
}

// DirDigest identifies the content of a directory of this machine, as "sha256:" and hex
// digits: the hash of every file's relative path and content hash, in the order of the
// paths' parts. Links to files count as the files.
func DirDigest(dir string) (string, error) {
	files, err := filesBelow(dir)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, rel := range files {
		content, err := hashFile(filepath.Join(dir, filepath.FromSlash(rel)))
		if err != nil {
			return "", err
		}
		_, _ = io.WriteString(sum, rel+"\x00"+content+"\x00")
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// filesBelow lists the files of a directory, relative and with slashes.
func filesBelow(dir string) ([]string, error) {
	var files []string
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			return nil // dangling links, sockets and the like are not content
		}
		rel, err := filepath.Rel(root, path)
		files = append(files, filepath.ToSlash(rel))
		return err
	})
	slices.SortFunc(files, func(a, b string) int {
		return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
	})
	return files, err
}

func hashFile(path string) (string, error) {
	f, err := bounded.OpenRegular(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	return bounded.SHA256(f)
}
